%% The hand of the tests inside a node under test: evaluates expressions that come over a loopback
%% socket, so that looking at the node needs no distribution connection, which would itself be seen.
%%
%% A request is the secret of the node and one line of Erlang; the answer is "ok" or "error", a
%% newline, and the value or the reason. Whoever cannot read the secret's file is not answered.
%% The processes and ports of this module do not count in snapshot/0.
-module(control).

-export([start/0, snapshot/0]).
-export([listen/2, serve/2]).

%% Called by node_start with -s: CONTROL_DIR has the secret and a fifo, which gets the port number
%% once the node is up.
start() ->
    Dir = os:getenv("CONTROL_DIR"),
    {ok, Secret} = file:read_file(filename:join(Dir, "secret")),
    spawn(?MODULE, listen, [string:trim(Secret), filename:join(Dir, "ready")]),
    ok.

listen(Secret, Ready) ->
    Options = [binary, {ip, {127, 0, 0, 1}}, {packet, line}, {active, false}, {buffer, 65536}, {backlog, 64}],
    {ok, Listener} = gen_tcp:listen(0, Options),
    {ok, Port} = inet:port(Listener),
    started(),
    %% What an answer loads lazily is loaded before the first snapshot.
    _ = answer("control:snapshot()."),
    _ = answer("fun(X) -> X + 1 end(1)."),
    _ = answer("error(warm)."),
    _ = answer("."),
    ok = file:write_file(Ready, integer_to_list(Port) ++ "\n"),
    accept(Listener, Secret).

started() ->
    case init:get_status() of
        {started, _} ->
            ok;
        _ ->
            receive after 1 -> ok end,
            started()
    end.

accept(Listener, Secret) ->
    {ok, Socket} = gen_tcp:accept(Listener),
    Pid = spawn(?MODULE, serve, [Socket, Secret]),
    case gen_tcp:controlling_process(Socket, Pid) of
        ok -> Pid ! yours;
        {error, _} -> exit(Pid, kill)
    end,
    accept(Listener, Secret).

serve(Socket, Secret) ->
    receive yours -> ok end,
    case line(Socket) of
        Secret -> gen_tcp:send(Socket, answer(unicode:characters_to_list(line(Socket))));
        _ -> ok
    end,
    gen_tcp:close(Socket).

%% A line may be longer than the buffer: then it comes in pieces.
line(Socket) ->
    case gen_tcp:recv(Socket, 0) of
        {ok, Piece} ->
            Size = byte_size(Piece) - 1,
            case Piece of
                <<Line:Size/binary, $\n>> -> Line;
                _ -> <<Piece/binary, (line(Socket))/binary>>
            end;
        {error, _} ->
            exit(normal)
    end.

answer(Text) ->
    try
        {ok, Tokens, _} = erl_scan:string(Text),
        {ok, Exprs} = erl_parse:parse_exprs(Tokens),
        {value, Value, _} = erl_eval:exprs(Exprs, []),
        Value
    of
        Lines = {lines, _} -> ["ok\n", lines(Lines)];
        Value1 -> ["ok\n", utf8("~0tp\n", [Value1])]
    catch
        Class:Reason -> ["error\n", utf8("~0tp: ~0tp\n", [Class, Reason])]
    end.

lines({lines, Pairs}) ->
    [utf8("~s ~0tp\n", [Key, Value]) || {Key, Value} <- Pairs].

utf8(Format, Args) ->
    unicode:characters_to_binary(io_lib:format(Format, Args)).

%% Everything a tracer could leave on a node, one line each.
snapshot() ->
    Own = [P || P <- processes(), own(process_info(P, initial_call))],
    Ports = [P || P <- erlang:ports(), not owned(P, Own)],
    Count = [
        {processes, length(processes() -- Own)},
        {ports, length(Ports)},
        {ets, length(ets:all())},
        {persistent_terms, maps:get(count, persistent_term:info())},
        {atoms, erlang:system_info(atom_count)}
    ],
    {lines, [
        {sessions, sessions()},
        {modules, [M || {M, _} <- lists:sort(code:all_loaded()), ours(atom_to_list(M))]},
        {registered, [N || N <- lists:sort(registered()), ours(atom_to_list(N))]},
        {hidden, lists:sort(nodes(hidden))},
        {maps, mapped()},
        {files, lists:append([files(Dir) || Dir <- lists:usort(dirs())])}
    ] ++ Count}.

own({initial_call, {?MODULE, _, _}}) -> true;
own(_) -> false.

owned(Port, Own) ->
    case erlang:port_info(Port, connected) of
        {connected, Pid} -> lists:member(Pid, Own);
        undefined -> true
    end.

ours(Name) ->
    string:find(Name, "etrace") =/= nomatch.

sessions() ->
    case code:ensure_loaded(trace) of
        {module, trace} -> lists:sort(apply(trace, session_info, [all]));
        _ -> []
    end.

%% What is mapped from the OTP itself does not count: its directory may well be called etrace.
mapped() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    Otp = os:getenv("CONTROL_OTP") ++ "/",
    Paths = [string:find(Line, "/") || Line <- string:split(unicode:characters_to_list(Maps), "\n", all)],
    lists:usort([Path || Path <- Paths, Path =/= nomatch, ours(Path), not lists:prefix(Otp, Path)]).

dirs() ->
    {ok, Cwd} = file:get_cwd(),
    Named = [os:getenv(Name) || Name <- ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR", "HOME"]],
    [Dir || Dir <- ["/tmp", "/var/tmp", "/dev/shm", "/run", Cwd | Named], Dir =/= false].

files(Dir) ->
    case file:list_dir(Dir) of
        {ok, Files} -> [filename:join(Dir, File) || File <- lists:sort(Files), ours(File)];
        {error, _} -> []
    end.
