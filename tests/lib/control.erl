%% SPDX-License-Identifier: Apache-2.0
%% Lets a test evaluate expressions inside a node under test, over a loopback socket. An inspection therefore needs no
%% distribution connection, which would itself change the node.
%%
%% A request is the node's secret and one line of Erlang. The answer is "ok" or "error", a newline, and the value or the
%% reason. A client that cannot read the file of the secret gets no answer. The processes and ports of this module do
%% not count in snapshot/0.
-module(control).

-export([start/0, adopt/1, adopted/2, snapshot/0, near/0, deep/0, newest/1, pace/1, spin/1, again/2, again/3]).
-export([companion_modules/0, companion/1, companion_functions/0, worker_hold/0]).
-export([listen/2, serve/2]).

%% node_start calls this with -s. CONTROL_DIR has the secret and a fifo, which gets the port number once the node is
%% up.
start() ->
    Dir = os:getenv("CONTROL_DIR"),
    {ok, Secret} = file:read_file(filename:join(Dir, "secret")),
    spawn(?MODULE, listen, [string:trim(Secret), filename:join(Dir, "ready")]),
    ok.

%% Evaluates Fun again and again, Ms milliseconds apart, until the message stop comes, or {stop, From}, which is answered
%% with stopped. In again/3, Fun turns one state into the next, and the answer is {stopped, State}. Such a loop must not be
%% written in an expression for on_node: erl_eval calls a fun while it receives, and the VM can crash if the time is over
%% meanwhile.
again(Ms, Fun) ->
    Fun(),
    receive stop -> ok; {stop, From} -> From ! stopped after Ms -> again(Ms, Fun) end.

again(Ms, Fun, State) ->
    Next = Fun(State),
    receive stop -> ok; {stop, From} -> From ! {stopped, Next} after Ms -> again(Ms, Fun, Next) end.

%% node_adopt calls this with -run on a separate node. It loads this module into a node that started without it.
adopt([Name, Dir, Otp]) ->
    Node = list_to_atom(Name),
    connect(Node, 600),
    {?MODULE, Code, File} = code:get_object_code(?MODULE),
    {module, ?MODULE} = erpc:call(Node, code, load_binary, [?MODULE, File, Code]),
    ok = erpc:call(Node, ?MODULE, adopted, [Dir, Otp]),
    halt().

connect(Node, Attempts) when Attempts > 0 ->
    case net_kernel:connect_node(Node) of
        true ->
            ok;
        false ->
            receive after 100 -> ok end,
            connect(Node, Attempts - 1)
    end.

%% The group leader of the RPC belongs to the adopting node, which exits soon, so replace it.
adopted(Dir, Otp) ->
    true = os:putenv("CONTROL_DIR", Dir),
    true = os:putenv("CONTROL_OTP", Otp),
    true = group_leader(whereis(init), self()),
    start().

listen(Secret, Ready) ->
    %% Each scheduler keeps freed buffers, up to 14 or 1 MiB of them. Small buffers keep this out of the memory in
    %% snapshots.
    Options = [binary, {ip, {127, 0, 0, 1}}, {packet, line}, {active, false}, {buffer, 1024}, {backlog, 64}],
    {ok, Listener} = gen_tcp:listen(0, Options),
    {ok, Port} = inet:port(Listener),
    started(),
    ?MODULE = ets:new(?MODULE, [named_table, public]),
    ets:insert(?MODULE, {0, 0}),
    %% An answer must not load code lazily after the first snapshot, so load it now.
    [code:ensure_loaded(M) || M <- [timer, erl_bits, eval_bits, string, maps, sets, instrument, trace]],
    _ = answer("{control:snapshot(), control:newest(1)}."),
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

%% A line longer than the buffer arrives in pieces.
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
        Tokens = tokens(Text),
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

%% Remembers the words of a request that were no atoms before: the test made these atoms, not the code under test.
tokens(Text) ->
    Before = erlang:system_info(atom_count),
    {ok, Tokens, _} = erl_scan:string(Text),
    Words = sets:from_list([element(3, Token) || Token <- Tokens, tuple_size(Token) =:= 3], [{version, 2}]),
    ets:insert(?MODULE, [{A, word} || A <- atoms(Before, erlang:system_info(atom_count)), sets:is_element(A, Words)]),
    Tokens.

%% Lists atoms by their numbers, which follow the order of creation.
atoms(From, To) ->
    atoms(From, To, []).

%% Uses no function that the tests trace.
atoms(From, To, Atoms) when From < To -> atoms(From, To - 1, [binary_to_term(<<131, 75, (To - 1):24>>) | Atoms]);
atoms(_, _, Atoms) -> Atoms.

%% Remembers names among the atoms that are new since the last call: names of clients, which the node assigns and
%% reuses, and names of companion modules. Reuse bounds their number by the most clients that existed at once.
names() ->
    [{_, From}] = ets:lookup(?MODULE, 0),
    To = erlang:system_info(atom_count),
    ets:insert(?MODULE, [{0, To} | [{A, name} || A <- atoms(From, To), name(atom_to_list(A))]]).

name("etrace_" ++ Rest) ->
    {Hash, Slot} = lists:split(min(8, length(Rest)), Rest),
    string:take(Hash, "0123456789abcdef") =:= {Hash, []} andalso length(Slot) < 3;
name(Name) ->
    {Own, At} = string:take(Name, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    length(Own) > 7 andalso lists:prefix("@", At).

count(What) ->
    ets:select_count(?MODULE, [{{'_', What}, [], [true]}]).

%% Lists the newest N atoms that are neither words nor names.
newest(N) ->
    lists:sublist([A || A <- lists:reverse(atoms(0, erlang:system_info(atom_count))), not ets:member(?MODULE, A)], N).

%% Lists everything that a tracer could leave on a node, one line each. assert_clean polls the fast checks of near/0,
%% and runs the slow checks of deep/0 once those agree.
snapshot() ->
    {lines, Near} = near(),
    {lines, Deep} = deep(),
    {lines, Near ++ Deep}.

deep() ->
    {Memory, Parts} = memory(),
    {lines, [{breakpoints, breakpoints()}, {memory, Memory}, {parts, Parts}]}.

near() ->
    Own = [P || P <- processes(), own(process_info(P, initial_call))],
    Ports = [P || P <- erlang:ports(), not owned(P, Own)],
    names(),
    #{count := Terms, memory := TermsMemory} = persistent_term:info(),
    {lines, [
        {os_pid, os:getpid()},
        {sessions, sessions()},
        {modules, [M || M <- lists:usort(erlang:loaded() ++ [M || {M, _} <- code:all_loaded()]), ours(atom_to_list(M))]},
        {old_code, [M || M <- lists:sort(erlang:loaded()), erlang:check_old_code(M)]},
        {hidden, lists:sort(nodes(hidden))},
        {connections, connections()},
        {maps, mapped()},
        {processes, length(processes() -- Own)},
        {ports, length(Ports)},
        {ets, length(ets:all())},
        {persistent_terms, {Terms, TermsMemory}},
        {names, count(name)},
        {atoms, erlang:system_info(atom_count) - count(name) - count(word)}
    ] ++ [{registered, Name} || Name <- lists:sort(registered())] ++ [{file, File} || File <- lists:append([files(Dir) || Dir <- lists:usort(dirs())])]}.

%% Counts the connections that net_kernel has not cleaned up yet.
connections() ->
    case ets:whereis(sys_dist) of
        undefined -> 0;
        Table -> ets:info(Table, size)
    end.

%% Lists functions, processes, ports and events that any session still traces.
breakpoints() ->
    All = [{M, F, A} || {M, _} <- code:all_loaded(), {F, A} <- functions(M)] ++ processes() ++ erlang:ports() ++
        [new_processes, new_ports, send, 'receive'],
    [{What, Who} || What <- All, Who <- [traced_by(What)], Who =/= none].

functions(M) ->
    try M:module_info(functions) catch error:undef -> [] end.

traced_by(What) ->
    case apply(trace, session_info, [What]) of
        undefined -> none;
        [] -> none;
        [{legacy, default}] when What =:= send; What =:= 'receive' -> none;
        Sessions -> lists:sort(Sessions)
    end.

%% Returns the memory in use and its parts. Only live data of processes counts, because the reserved part of a heap
%% depends on when it grew. A suspended process cannot answer, so it is skipped. The parts explain a difference; they
%% list the largest processes and tables.
memory() ->
    Asked = [{P, garbage_collect(P, [{async, P}])} || P <- processes(), P =/= self(), process_info(P, status) =/= {status, suspended}],
    Alive = [{receive {garbage_collect, P, _} -> alive(P) after 2000 -> 0 end, P} || {P, async} <- Asked],
    garbage_collect(),
    try erlang:memory() of
        Kinds ->
            Heaps = erlang:system_info(wordsize) * lists:sum([Words || {Words, _} <- Alive]),
            Names = [{whereis(Name), Name} || Name <- registered()],
            Processes = [{proplists:get_value(P, Names, P), Words} || {Words, P} <- largest(Alive)],
            Tables = [{T, Words} || {Words, T} <- largest([{Words, T} || T <- ets:all(), Words <- [ets:info(T, memory)], is_integer(Words)])],
            {proplists:get_value(total, Kinds) - proplists:get_value(processes, Kinds) + Heaps,
                [{heaps, Heaps} | Kinds] ++ [{processes_in_words, Processes}, {tables_in_words, Tables}]}
    catch
        error:notsup -> {0, []} % with allocators that keep no statistics
    end.

largest(Sized) -> lists:sublist(lists:reverse(lists:sort(Sized)), 5).

alive(P) ->
    case process_info(P, garbage_collection_info) of
        {_, Info} -> lists:sum([proplists:get_value(What, Info) || What <- [heap_size, old_heap_size, stack_size, mbuf_size]]);
        undefined -> 0
    end.

companion_modules() -> [M || M <- erlang:loaded(), is_companion(M)].

%% Lists processes of companions: the janitors, their heirs, those that began with a function such as owner or worker,
%% or all but the heirs. A janitor is registered as its companion's module. An heir monitors a janitor.
companion(janitor) ->
    [P || Name <- registered(), is_companion(Name), P <- [whereis(Name)], is_pid(P)];
companion(heir) ->
    [P || J <- companion(janitor), {_, Watch} <- [process_info(J, monitored_by)], P <- Watch, process_info(P, initial_call) =:= {initial_call, {erlang, apply, 2}}];
companion(all) ->
    lists:usort(companion(janitor) ++ [P || {P, _} <- began()]);
companion(Function) ->
    [P || {P, F} <- began(), F =:= Function].

%% Suspends the worker of the only companion between two jobs, until the caller ends or resumes it, and returns it. Within
%% a job it pauses for a millisecond now and then. OTP 29.1 never wakes a process that was suspended in a receive with less
%% than a millisecond of its time left.
worker_hold() ->
    case [{P, process_info(P, [status, current_function])} || P <- companion(worker)] of
        [{Worker, [{status, waiting}, {current_function, {_, _, 1}}]}] -> erlang:suspend_process(Worker), Worker;
        _ -> timer:sleep(1), worker_hold()
    end.

began() -> [{P, F} || P <- processes(), {_, {M, F, _}} <- [process_info(P, initial_call)], is_companion(M)].

%% Returns the functions with which the processes of companions began, sorted, except lookers, which come and go.
companion_functions() -> lists:sort([F || {_, F} <- began(), F =/= looker]).

is_companion(Name) -> lists:prefix("etrace_", atom_to_list(Name)).

%% Returns the time of work:spin/1 in the process as a percentage of the time of its untraced twin in this module. The
%% minimum of several runs removes noise of the machine.
pace(Pid) ->
    apply(work, ask, [Pid, fun() ->
        {Twin, Spin} = best(20, infinity, infinity),
        100 * Spin div max(1, Twin)
    end]).

best(0, Twin, Spin) -> {Twin, Spin};
best(N, Twin, Spin) -> best(N - 1, min(Twin, took(fun ?MODULE:spin/1)), min(Spin, took(fun work:spin/1))).

took(Spin) ->
    Start = erlang:monotonic_time(),
    ok = Spin(20000),
    erlang:monotonic_time() - Start.

spin(0) -> ok;
spin(N) -> spin(N - 1).

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

%% Files mapped from the OTP itself do not count, because its directory may have etrace in its name.
mapped() ->
    {ok, Maps} = file:read_file("/proc/self/maps"),
    Otp = os:getenv("CONTROL_OTP") ++ "/",
    Paths = [string:find(Line, "/") || Line <- string:split(unicode:characters_to_list(Maps), "\n", all)],
    lists:usort([Path || Path <- Paths, Path =/= nomatch, ours(Path), not lists:prefix(Otp, Path)]).

dirs() ->
    {ok, Cwd} = file:get_cwd(),
    Named = [os:getenv(Name) || Name <- ["TMPDIR", "TMP", "TEMP", "XDG_RUNTIME_DIR", "HOME"]],
    Cache = [filename:join(Home, ".cache") || Home <- [os:getenv("HOME")], Home =/= false],
    shared() ++ [Cwd] ++ Cache ++ [Dir || Dir <- Named, Dir =/= false].

shared() -> ["/tmp", "/var/tmp", "/dev/shm", "/run"].

%% Shared directories have files of others, so only names in the form of the companion's directories count there.
files(Dir) ->
    Ours = case lists:member(Dir, shared()) of
        true -> fun(File) -> lists:prefix("etrace-", File) andalso length(File) =:= 39 end;
        false -> fun ours/1
    end,
    case file:list_dir(Dir) of
        {ok, Files} -> [filename:join(Dir, File) || File <- lists:sort(Files), Ours(File)];
        {error, _} -> []
    end.
