%% SPDX-License-Identifier: Apache-2.0
%% The second module of the loops that run through two modules; see loops.erl.
-module(loops_too).
-export([hop/2, pong/1]).

hop(module, N) -> loops:hop(module, N + 1).
pong(N) -> loops:ping(N + 1).
