#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% pack.escript FIRST OURS JANITOR ASK SWEEP OUT.c VARIANTS [VARIANT BEAM]... [ARCHITECTURE SO]...
%%
%% Writes the files that the client sends to a node into one C file, for cli/node/companion.h. VARIANTS is the number of
%% variants of the module. The node takes the library of its own architecture, so the client sends all of them,
%% compressed. A variant that does not load the NIF needs no library.
%%
%% It writes the .beam in the oldest encoding, whatever compiler made it, so that every supported OTP loads it: only the
%% chunks that loading needs, compressed literals, and atoms with one-byte lengths, as before OTP 28. Atoms stay on a node
%% for ever. So names that no other module uses (local functions, variables of the janitor) are replaced by atoms that
%% every node has.

-mode(compile).

main([First, Ours, Janitor, Ask, Sweep, Out, Variants | Built]) ->
    {Beams, Sos} = lists:split(list_to_integer(Variants), pairs(Built)),
    Modules = [module(Variant, Beam) || {Variant, Beam} <- Beams],
    Libraries = [library(Arch, So) || {Arch, So} <- Sos],
    Zipped = [Z || {_, Z} <- Libraries],
    Forms = term_to_binary(expressions([First, Ours, Janitor]), [{minor_version, 1}]),
    AskForms = term_to_binary(expressions([First, Ask]), [{minor_version, 1}]),
    SweepForms = term_to_binary(expressions([First, Ours, Sweep]), [{minor_version, 1}]),
    Sum = string:lowercase(binary:encode_hex(sha256([[Beam || {_, Beam, _} <- Modules], Zipped, Forms]))),
    Hash = binary_part(Sum, 0, 8),
    ok = file:write_file(Out, [
        "/* Written by nif/pack.escript. */\n#include \"node/companion.h\"\n\n",
        [bytes(Variant, Beam) || {Variant, Beam, _} <- Modules],
        bytes("libraries", term_to_binary(Libraries)), bytes("janitor", Forms), bytes("ask", AskForms), bytes("sweep", SweepForms),
        "_Static_assert(COMPANION_VARIANTS == ", Variants, ", \"enum companion_variant and nif/meson.build differ\");\n\n"
        "const struct companion companion = {\n    {\n", [entry(M, Zipped) || M <- Modules], "    },\n"
        "    libraries, sizeof libraries - 1, janitor, sizeof janitor - 1, ask, sizeof ask - 1, sweep, sizeof sweep - 1, \"",
        Hash, "\", \"", Sum, "\", \"", lists:join(" ", [Arch || {Arch, _} <- Libraries]), "\",\n};\n"]);
main(_) ->
    fail("usage: pack.escript FIRST OURS JANITOR ASK SWEEP OUT.c VARIANTS [VARIANT BEAM]... [ARCHITECTURE SO]...", []).

%% Writes a struct companion_module. The node compares the MD5 with what it received.
entry({Variant, Beam, LoadsNif}, Zipped) ->
    Md5 = erlang:md5([Beam | [Z || LoadsNif, Z <- Zipped]]),
    ["        [COMPANION_", string:uppercase(Variant), "] = {", Variant, ", sizeof ", Variant, " - 1, ", atom_to_list(LoadsNif), ", {",
        lists:join(",", [integer_to_list(B) || <<B>> <= Md5]), "}},\n"].

pairs([]) -> [];
pairs([Arch, So | Rest]) -> [{Arch, So} | pairs(Rest)].

%% {Architecture, the compressed library}
library(Arch, File) ->
    {ok, So} = file:read_file(File),
    once(So) orelse fail("~s does not hold the name of the module exactly once", [File]),
    {Arch, zlib:compress(So)}.

fail(Format, Arguments) ->
    io:format(standard_error, "pack.escript: " ++ Format ++ "~n", Arguments),
    halt(1).

once(Bytes) -> length(binary:matches(Bytes, <<"etrace_00000000_0">>)) =:= 1.

%% Writes an additional byte, because C has no empty arrays.
bytes(Name, Bytes) ->
    ["static const unsigned char ", Name, "[] = {\n", lines(Bytes), "0,\n};\n\n"].

lines(<<Line:24/binary, Rest/binary>>) -> [line(Line) | lines(Rest)];
lines(Rest) -> line(Rest).

line(Bytes) -> [[[integer_to_list(B), ","] || <<B>> <= Bytes], "\n"].

%% ---- the janitor, and what asks and sweeps --------------------------------------------------------------------------------------------------

expressions(Files) ->
    Texts = [begin {ok, Text} = file:read_file(File), Text end || File <- Files],
    {ok, Tokens, _} = erl_scan:string(unicode:characters_to_list(iolist_to_binary(Texts))),
    {ok, Exprs} = erl_parse:parse_exprs([erl_parse_location(T) || T <- Tokens]),
    {Renamed, Names} = rename(Exprs, #{'Boot' => hd(known())}),
    map_size(Names) =< length(known()) orelse fail("too many variables in ~s", [lists:last(Files)]),
    {hd(known()), Renamed}.

%% Sets every line number to 1: the node has no use for them.
erl_parse_location(Token) -> setelement(2, Token, 1).

rename({var, L, '_'}, Names) -> {{var, L, '_'}, Names};
rename({var, L, V}, Names0) ->
    {New, Names} = name(V, Names0),
    {{var, L, New}, Names};
rename({named_fun, L, V, Clauses}, Names0) ->
    {New, Names1} = name(V, Names0),
    {Renamed, Names} = rename(Clauses, Names1),
    {{named_fun, L, New, Renamed}, Names};
rename({'receive', _, _, _, _}, _) ->
    fail("an interpreted receive must have no time limit: the virtual machine could crash (janitor.eval)", []);
rename(T, Names0) when is_tuple(T) ->
    {List, Names} = rename(tuple_to_list(T), Names0),
    {list_to_tuple(List), Names};
rename([H | T], Names0) ->
    {H1, Names1} = rename(H, Names0),
    {T1, Names} = rename(T, Names1),
    {[H1 | T1], Names};
rename(T, Names) -> {T, Names}.

name(V, Names) ->
    case Names of
        #{V := New} -> {New, Names};
        _ -> New = lists:nth(map_size(Names) + 1, known()), {New, Names#{V => New}}
    end.

%% Atoms that every VM has.
known() -> [true, false, undefined, ok, error, exit, normal, kill, killed, noproc, badarg, badarith, badmatch, function_clause,
    case_clause, if_clause, try_clause, undef, system_limit, timeout, timeout_value, infinity, high, low, max, min, link, monitor,
    register, spawn, send, 'receive', call, apply, erlang, lists, element, size, self, node, nodes, all, atom, binary, float, integer, list,
    pid, port, tuple, message, messages, links, monitors, process, processes, ports, running, procs, trace, call_count, registered_name].

%% ---- the module ---------------------------------------------------------------------------------------------------

%% {Variant, the module, true if it loads the NIF}
module(Variant, File) ->
    {ok, Beam} = file:read_file(File),
    {ok, {_, [{exports, Exports}]}} = beam_lib:chunks(Beam, [exports]),
    {Variant, canonical(Beam), lists:member({open, 1}, Exports)}.

canonical(Beam) ->
    {ok, Module, Chunks} = beam_lib:all_chunks(Beam),
    Module =:= etrace_00000000_0 orelse fail("the module is called ~s", [Module]),
    Needed = ["AtU8", "Code", "StrT", "ImpT", "ExpT", "FunT", "LitT", "Line"],
    Private = private(Beam),
    Kept = [{Id, chunk(Id, Bytes, Private)} || Id0 <- Needed, {Id, Bytes} <- Chunks, Id =:= Id0, byte_size(Bytes) > 0],
    {ok, New} = beam_lib:build_module(Kept),
    once(New) orelse fail("the module's name stands in more than one place", []),
    New.

%% Atoms: a positive count and one-byte lengths; since OTP 28 the count is negated and the lengths are compact terms.
chunk("AtU8", <<Count:32/signed, Rest/binary>>, Private) ->
    Atoms = case Count < 0 of true -> compact(Rest); false -> plain(Rest) end,
    length(Atoms) =:= abs(Count) orelse fail("the table of atoms cannot be read", []),
    Shown = [case is_map_key(A, Private) of true -> <<"owner">>; false -> A end || A <- Atoms],
    iolist_to_binary([<<(abs(Count)):32>> | [<<(byte_size(A)), A/binary>> || A <- Shown]]);
%% Literals: their size, then the compressed literals; since OTP 28 the size 0, then the plain literals.
chunk("LitT", <<0:32, Plain/binary>>, _) ->
    <<(byte_size(Plain)):32, (zlib:compress(Plain))/binary>>;
chunk(_, Bytes, _) -> Bytes.

plain(<<>>) -> [];
plain(<<N, A:N/binary, Rest/binary>>) -> [A | plain(Rest)].

compact(<<>>) -> [];
compact(<<N:4, 0:1, _:3, A:N/binary, Rest/binary>>) -> [A | compact(Rest)];
compact(<<Hi:3, 1:2, _:3, Lo, Rest/binary>>) ->
    N = Hi bsl 8 bor Lo,
    <<A:N/binary, More/binary>> = Rest,
    [A | compact(More)].

%% The atoms that only name local functions and funs in stack traces, where the line says more. An atom that is also
%% imported, exported, or an operand of an instruction is not among them.
private(Beam) ->
    {beam_file, Module, Exports, _, _, Code} = beam_disasm:file(Beam),
    {ok, {_, [{imports, Imports}]}} = beam_lib:chunks(Beam, [imports]),
    Public = [Module | [F || {F, _, _} <- Exports]] ++ lists:append([[M, F] || {M, F, _} <- Imports]),
    Used = lists:foldl(fun(A, Set) -> Set#{A => true} end, #{}, Public ++ operands(Code, [])),
    maps:from_list([{atom_to_binary(F), true} || F <- functions(Code), not is_map_key(F, Used)]).

functions(Code) -> [F || {function, F, _, _, _} <- Code].

operands({func_info, _, _, _}, Acc) -> Acc;
operands({atom, A}, Acc) -> [A | Acc];
operands({function, _, _, _, Code}, Acc) -> operands(Code, Acc);
operands(T, Acc) when is_tuple(T) -> operands(tuple_to_list(T), Acc);
operands([H | T], Acc) -> operands(T, operands(H, Acc));
operands(_, Acc) -> Acc.

%% ---- SHA-256: the build's OTP may have come without crypto ---------------------------------------------------------

sha256(Parts) ->
    Data = iolist_to_binary(Parts),
    Pad = (119 - byte_size(Data) rem 64) rem 64,
    Padded = <<Data/binary, 16#80, 0:Pad/unit:8, (bit_size(Data)):64>>,
    Roots = [fraction(P, 2) || P <- lists:sublist(primes(), 8)],
    K = [fraction(P, 3) || P <- primes()],
    << <<H:32>> || H <- blocks(Padded, Roots, K) >>.

blocks(<<>>, H, _) -> H;
blocks(<<Block:64/binary, Rest/binary>>, H, K) ->
    W = schedule(lists:reverse([X || <<X:32>> <= Block]), 48),
    Mixed = lists:foldl(fun mix/2, H, lists:zip(K, W)),
    blocks(Rest, [(A + B) band 16#ffffffff || {A, B} <- lists:zip(H, Mixed)], K).

%% The message schedule; newest word first while it grows.
schedule(W, 0) -> lists:reverse(W);
schedule(W, N) ->
    [A, B, C, D] = [lists:nth(I, W) || I <- [2, 7, 15, 16]],
    S1 = rotate(A, 17) bxor rotate(A, 19) bxor (A bsr 10),
    S0 = rotate(C, 7) bxor rotate(C, 18) bxor (C bsr 3),
    schedule([(D + S0 + B + S1) band 16#ffffffff | W], N - 1).

mix({K, W}, [A, B, C, D, E, F, G, H]) ->
    S1 = rotate(E, 6) bxor rotate(E, 11) bxor rotate(E, 25),
    T1 = H + S1 + ((E band F) bxor (bnot E band 16#ffffffff band G)) + K + W,
    S0 = rotate(A, 2) bxor rotate(A, 13) bxor rotate(A, 22),
    T2 = S0 + ((A band B) bxor (A band C) bxor (B band C)),
    [(T1 + T2) band 16#ffffffff, A, B, C, (D + T1) band 16#ffffffff, E, F, G].

rotate(X, N) -> ((X bsr N) bor (X bsl (32 - N))) band 16#ffffffff.

primes() -> [P || P <- lists:seq(2, 311), [] =:= [D || D <- lists:seq(2, P - 1), P rem D =:= 0]].

%% The first 32 bits of the fractional part of a prime's root.
fraction(P, Root) -> root(P bsl (32 * Root), Root, 0, 1 bsl 40) band 16#ffffffff.

root(_, _, Low, High) when High - Low =:= 1 -> Low;
root(N, Root, Low, High) ->
    Middle = (Low + High) div 2,
    Power = case Root of 2 -> Middle * Middle; 3 -> Middle * Middle * Middle end,
    case Power =< N of true -> root(N, Root, Middle, High); false -> root(N, Root, Low, Middle) end.
