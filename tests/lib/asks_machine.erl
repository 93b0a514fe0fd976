%% SPDX-License-Identifier: Apache-2.0
%% A gen_statem for the tests of `etrace requests`. It postpones {work, Ms} while it is locked.
-module(asks_machine).
-behaviour(gen_statem).
-export([start/1, call/1, locked/2]).
-export([init/1, callback_mode/0, locked/3, open/3, handle_event/4]).

start(Mode) ->
    persistent_term:put(?MODULE, Mode),
    {ok, Pid} = gen_statem:start({local, ?MODULE}, ?MODULE, [], []),
    persistent_term:erase(?MODULE),
    Pid.

call(Request) -> gen_statem:call(?MODULE, Request).

%% A request that is postponed for Ms milliseconds, and then takes Work milliseconds.
locked(Ms, Work) ->
    ok = call(lock),
    spawn(fun() -> timer:sleep(Ms), call(unlock) end),
    call({work, Work}).

callback_mode() -> persistent_term:get(?MODULE).

init([]) -> {ok, open, []}.

open({call, From}, lock, _) -> {next_state, locked, [], {reply, From, ok}};
open({call, From}, {work, Ms}, _) -> timer:sleep(Ms), {keep_state_and_data, {reply, From, ok}};
open(_, _, _) -> keep_state_and_data.

locked({call, From}, unlock, _) -> {next_state, open, [], {reply, From, ok}};
locked({call, _}, {work, _}, _) -> {keep_state_and_data, postpone};
locked(_, _, _) -> keep_state_and_data.

handle_event(Type, Content, State, Data) -> ?MODULE:State(Type, Content, Data).
