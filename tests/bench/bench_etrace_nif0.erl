%% SPDX-License-Identifier: Apache-2.0
%% The stubs of etrace's own NIF for the bench. The bench writes the name of this module over the placeholder in a copy
%% of the library.
-module(bench_etrace_nif0).
-export([load/1, hello/0, open/1, exclude/1, gate/2, kinds/2, program/3, owing/2, unasked/2, ticks/0, drain/4, tally/2, tally/4, doze/1, renew/1, close/1]).
-export([enabled/3, enabled_call/3, enabled_send/3, enabled_receive/3, enabled_procs/3, enabled_ports/3,
         enabled_running_procs/3, enabled_running_ports/3, enabled_garbage_collection/3, trace/5]).

-define(STUB, erlang:nif_error(not_loaded)).

load(Path) -> erlang:load_nif(Path, <<>>).

hello() -> ?STUB.
open(_) -> ?STUB.
exclude(_) -> ?STUB.
gate(_, _) -> ?STUB.
kinds(_, _) -> ?STUB.
program(_, _, _) -> ?STUB.
owing(_, _) -> ?STUB.
unasked(_, _) -> ?STUB.
ticks() -> ?STUB.
drain(_, _, _, _) -> ?STUB.
tally(_, _) -> ?STUB.
tally(_, _, _, _) -> ?STUB.
doze(_) -> ?STUB.
renew(_) -> ?STUB.
close(_) -> ?STUB.
enabled(_, _, _) -> ?STUB.
enabled_call(_, _, _) -> ?STUB.
enabled_send(_, _, _) -> ?STUB.
enabled_receive(_, _, _) -> ?STUB.
enabled_procs(_, _, _) -> ?STUB.
enabled_ports(_, _, _) -> ?STUB.
enabled_running_procs(_, _, _) -> ?STUB.
enabled_running_ports(_, _, _) -> ?STUB.
enabled_garbage_collection(_, _, _) -> ?STUB.
trace(_, _, _, _, _) -> ?STUB.
