%% SPDX-License-Identifier: Apache-2.0
%% Finds the functions that match selectors: {ModulePattern, FunctionPattern, LowArity, HighArity | -1}. Runs in a
%% helper. Names are binaries. An atom is created only for a module whose file is in the code path, and only a module
%% that is named exactly is loaded. If the node itself later loads a module that matches a wildcard, the self-check arms
%% it. Wildcards never select module_info, compiler-generated functions ('-f/1-fun-0-'), or a companion.

%% Returns all functions that match a selector: [{M, F, A}]. Throws if the selector names a module that has no such
%% function.
select({ModPat, FunPat, Low, High0}, Scope) ->
    pace(), % the search for an unloaded module reads every directory of the code path
    High = case High0 of -1 -> 255; _ -> High0 end,
    Mods = modules(ModPat),
    Match = matcher(FunPat),
    Found = lists:flatmap(fun(M) -> functions(M, FunPat, Match, Low, High, Scope) end, Mods),
    case {Found, ModPat, Mods} of
        {[], {name, _}, [M]} -> throw(no_function(M, FunPat, Low, High0, Scope));
        _ -> Found
    end.

functions(M, FunPat, Match, Low, High, Scope) ->
    pace(),
    Listed = [FA || FA = {F, A} <- listed(M, Scope), A >= Low, A =< High, Match(F)],
    [{M, F, A} || {F, A} <- lists:usort(Listed ++ builtins(M, FunPat, Low, High))].

%% Returns functions of the VM that are missing in the tables of their modules.
builtins(M, {name, Name}, Low, High) ->
    case existing([Name]) of
        [F] -> [{F, A} || A <- lists:seq(Low, High), erlang:is_builtin(M, F, A)];
        [] -> []
    end;
builtins(_, _, _, _) -> [].

listed(M, Scope) ->
    Item = case Scope of global -> exports; _ -> functions end,
    try erlang:get_module_info(M, Item) catch error:_ -> [] end.

%% ---- modules ------------------------------------------------------------------------------------------------------

modules({name, Name}) ->
    M = module(Name),
    companion(M) andalso throw({no_module, Name, []}),
    [M];
modules({application, Name}) ->
    case application_modules(Name) of
        {ok, Mods} -> [M || M <- Mods, erlang:module_loaded(M)];
        undefined ->
            Known = [atom_to_binary(element(1, A)) || A <- application:loaded_applications()],
            throw({no_app, Name, near(Name, Known)})
    end;
modules({behaviour, Name}) ->
    case existing([Name]) of
        [B] -> [M || M <- erlang:loaded(), not companion(M), behaves(M, B)];
        [] -> throw({no_module, Name, near_modules(Name)})
    end;
modules({except, Pattern, Not}) ->
    {Several, Single} = lists:partition(fun({How, _}) -> How =:= application orelse How =:= behaviour; (any) -> false end, Not),
    Matches = lists:map(fun matcher/1, Single),
    [M || M <- modules(Pattern) -- lists:flatmap(fun modules/1, Several), not lists:any(fun(Match) -> Match(M) end, Matches)];
modules(Pattern) ->
    Match = matcher(Pattern),
    [M || M <- erlang:loaded(), not companion(M), Match(M)].

%% Returns {ok, [Module]} | undefined. If the application is not loaded, reads its file in the code path.
application_modules(Name) ->
    case case existing([Name]) of [A] -> application:get_key(A, modules); [] -> undefined end of
        undefined ->
            Plain = byte_size(Name) < 256 andalso binary:match(Name, [<<$/>>, <<0>>]) =:= nomatch,
            case Plain andalso code:where_is_file(unicode:characters_to_list(Name) ++ ".app") of
                File when is_list(File) ->
                    case file:consult(File) of
                        {ok, [{application, _, Keys}]} -> {ok, proplists:get_value(modules, Keys, [])};
                        _ -> undefined
                    end;
                _ -> undefined
            end;
        Found -> Found
    end.

%% Loads modules that match a wildcard or belong to a selected application. A wildcard loads only modules outside the
%% directories of the Erlang and Elixir installations. `_' and behaviours load nothing: if the node itself loads such a
%% module later, the self-check arms it.
load_available(Probes) ->
    Patterns = lists:usort([meant(M) || #{type := call, select := Selectors} <- Probes, {M, _, _, _} <- Selectors]),
    Apps = [Ms || {application, Name} <- Patterns, {ok, Ms} <- [application_modules(Name)]],
    Matches = [matcher(P) || P = {How, _} <- Patterns, How =:= glob orelse How =:= re],
    Own = case Matches of
        [] -> [];
        _ -> [M || M <- lists:map(fun list_to_atom/1, own_modules()), lists:any(fun(Match) -> Match(M) end, Matches)]
    end,
    code:ensure_modules_loaded([M || M <- lists:usort(lists:append(Apps) ++ Own), not companion(M)]).

meant({except, Pattern, _}) -> Pattern;
meant(Pattern) -> Pattern.

%% Returns the names of the modules in the code path, without the directories of the Erlang and Elixir installations.
own_modules() ->
    Installed = [filename:dirname(D) || A <- [kernel, elixir], D <- [code:lib_dir(A)], is_list(D)],
    Paths = [P || P <- code:get_path(), is_list(P), not lists:any(fun(I) -> lists:prefix(I, P) end, Installed)],
    [filename:rootname(F) || P <- Paths, {ok, Files} <- [file:list_dir(P)], F <- Files, is_list(F), filename:extension(F) =:= ".beam"].

%% Returns the module of that name; loads it from the code path if necessary.
module(Name) ->
    M = case existing([Name]) of
        [Known] -> Known;
        [] ->
            File = try binary_to_list(Name) ++ ".beam" catch error:_ -> throw({no_module, Name, []}) end,
            Plain = lists:all(fun(C) -> C =/= $/ andalso C =/= 0 end, File) andalso byte_size(Name) < 256,
            case Plain andalso code:where_is_file(File) of
                Path when is_list(Path) -> binary_to_atom(Name);
                _ -> throw({no_module, Name, near_modules(Name)})
            end
    end,
    case loaded(M) of
        true -> M;
        false -> throw({no_module, Name, near_modules(Name)})
    end.

loaded(M) ->
    erlang:module_loaded(M) orelse
        case code:ensure_loaded(M) of
            {module, _} -> put(loaded, [M | loaded_for_trace()]), true;
            _ -> false
        end.

%% The modules that this process has loaded because an expression names them.
loaded_for_trace() -> case get(loaded) of undefined -> []; Modules -> Modules end.

behaves(M, Behaviour) ->
    Attributes = try erlang:get_module_info(M, attributes) catch error:_ -> [] end,
    lists:any(fun
        ({Key, List}) when Key =:= behaviour; Key =:= behavior -> lists:member(Behaviour, List);
        (_) -> false
    end, Attributes).

%% Returns true if a loaded module is a companion of any version: it has the name of a slot and exports what every
%% version exports, because a module of the user may have such a name. ours.eval does the same for the janitor and the
%% sweep.
companion(M) ->
    is_slot(M) andalso lists:all(fun({Name, Arity}) -> erlang:function_exported(M, Name, Arity) end, [{owner, 1}, {hello, 0}, {trace, 5}]).

%% Returns true for etrace_<8 hexadecimal digits>_<slot>.
is_slot(Name) ->
    case atom_to_list(Name) of
        "etrace_" ++ [A, B, C, D, E, F, G, H, $_, Slot] ->
            lists:all(fun(X) -> X >= $0 andalso X =< $9 orelse X >= $a andalso X =< $f end, [A, B, C, D, E, F, G, H])
                andalso (Slot >= $0 andalso Slot =< $9 orelse Slot >= $A andalso Slot =< $F);
        _ ->
            false
    end.

existing(Names) ->
    lists:flatmap(fun(Name) -> try [binary_to_existing_atom(Name)] catch error:_ -> [] end end, Names).

%% ---- patterns -----------------------------------------------------------------------------------------------------

matcher(any) -> fun written/1;
matcher({name, Name}) ->
    case existing([Name]) of [A] -> fun(F) -> F =:= A end; [] -> fun(_) -> false end end;
matcher({glob, Glob}) ->
    regex(Glob, ["\\A(?s:", [glob(C) || C <- unicode:characters_to_list(Glob)], ")\\z"]);
matcher({re, Text}) ->
    regex(Text, Text).

regex(Said, Pattern) ->
    case re:compile(Pattern, [unicode, ucp]) of
        {ok, Compiled} ->
            Options = [{capture, none}, {match_limit, 100000}],
            fun(A) -> written(A) andalso re:run(atom_to_binary(A), Compiled, Options) =:= match end;
        {error, {Text, At}} ->
            throw({bad_pattern, Said, unicode:characters_to_binary(Text), At})
    end.

glob($*) -> ".*";
glob($?) -> ".";
glob(C) when C >= $a, C =< $z; C >= $A, C =< $Z; C >= $0, C =< $9; C =:= $_; C > 127 -> C;
glob(C) -> [$\\, C].

%% Returns true if a person wrote the function: it is not module_info or compiler-generated.
written(module_info) -> false;
written(A) -> not lists:prefix("-", atom_to_list(A)).

%% ---- did you mean -------------------------------------------------------------------------------------------------

no_function(M, FunPat, Low, High, Scope) ->
    {_, Name} = case FunPat of any -> {any, <<"_">>}; _ -> FunPat end,
    Listed = listed(M, Scope),
    Same = [fa(F, A) || {F, A} <- Listed, atom_to_binary(F) =:= Name],
    Hidden = case Scope of
        global -> [fa(F, A) || {F, A} <- listed(M, local), atom_to_binary(F) =:= Name];
        _ -> []
    end,
    Near = case Same of
        [] -> near(Name, lists:usort([atom_to_binary(F) || {F, _} <- Listed, written(F)]));
        _ -> lists:sublist(lists:sort(Same), 8)
    end,
    {no_function, atom_to_binary(M), Name, Low, High, Near, Hidden =/= []}.

fa(F, A) -> <<(atom_to_binary(F))/binary, $/, (integer_to_binary(A))/binary>>.

near_modules(Name) ->
    Own = try own_modules() catch error:_ -> [] end, % without a code server
    near(Name, lists:usort([atom_to_binary(M) || M <- erlang:loaded(), not companion(M)] ++ [unicode:characters_to_binary(M) || M <- Own])).

%% Returns the three names that resemble it most, or fewer if fewer resemble it.
near(Name, Known) ->
    Text = unicode:characters_to_list(Name),
    Long = length(Text),
    Without = without_one(Text),
    Scored = [{resembles(Text, Without, unicode:characters_to_list(K)), K}
              || K <- Known, abs(byte_size(K) - Long) =< 4 orelse begins(K, Name) orelse begins(Name, K)],
    Close = [S || S = {Score, _} <- Scored, Score > 0.8],
    [K || {_, K} <- lists:sublist(lists:reverse(lists:sort(Close)), 3)].

%% Returns the similarity of two names. In a short name one typo changes the similarity a lot, so names that differ in
%% one letter count as similar.
resembles(Text, Without, Known) ->
    Score = string:jaro_similarity(Text, Known),
    case Score < 0.95 andalso abs(length(Text) - length(Known)) =< 1 andalso Without -- without_one(Known) =/= Without of
        true -> 0.95;
        false -> case begins(Text, Known) orelse begins(Known, Text) of true -> max(Score, 0.85); false -> Score end
    end.

%% Returns true if the second name continues the first one: seq, sequence.
begins(Short, Long) -> string:length(Short) >= 3 andalso string:prefix(Long, Short) =/= nomatch.

%% Returns the text itself, and all texts that lack one of its letters.
without_one([_, _ | _] = Text) -> [Text | [lists:sublist(Text, N) ++ lists:nthtail(N + 1, Text) || N <- lists:seq(0, length(Text) - 1)]];
without_one(Text) -> [Text].

%% Throws the error that these selectors select no function.
-spec none(map()) -> no_return().
none(#{select := Selectors}) ->
    Text = unicode:characters_to_binary(lists:join(" | ", lists:map(fun selector_text/1, Selectors))),
    throw({empty, Text, lists:usort(lists:flatmap(fun above/1, Selectors))}).

%% Returns the module itself, if the selector is for the modules below it: Bank.Teller of Bank.Teller.*.
above({{except, Pattern, _}, F, Low, High}) -> above({Pattern, F, Low, High});
above({{glob, Glob}, _, _, _}) when byte_size(Glob) > 2 ->
    case split_binary(Glob, byte_size(Glob) - 2) of
        {Name, <<".*">>} -> [Name || M <- existing([Name]), erlang:module_loaded(M) orelse is_list(code:which(M))];
        _ -> []
    end;
above(_) -> [].

selector_text({M, any, 0, 255}) -> pattern_text(M);
selector_text({M, F, Low, High}) ->
    [pattern_text(M), $:, pattern_text(F) | case {Low, High} of
        {0, 255} -> "";
        {A, A} -> [$/, integer_to_list(A)];
        {_, 255} -> [$/, integer_to_list(Low), "..", $_];
        _ -> [$/, integer_to_list(Low), "..", integer_to_list(High)]
    end].

pattern_text({except, Pattern, Not}) -> [pattern_text(Pattern), " - ", lists:join(", ", lists:map(fun pattern_text/1, Not))];
pattern_text(any) -> "_";
pattern_text({name, Name}) -> Name;
pattern_text({glob, Glob}) -> Glob;
pattern_text({re, Text}) -> ["~/", Text, "/"];
pattern_text({application, Name}) -> ["app(", Name, ")"];
pattern_text({behaviour, Name}) -> ["behaviour(", Name, ")"].
