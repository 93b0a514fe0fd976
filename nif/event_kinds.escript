#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% event_kinds.escript event_kinds.def tracer_kinds.hrl
%%
%% Writes the event kinds as macros, and what the fallback tracer needs for each kind of the VM:
%%
%%   fb_kind(Tag) -> number of the kind, or none
%%   fb_parse(Tag, Event) -> calls fb_LAYOUT(Kind, Event), which tracer_fallback.hrl defines

main([In, Out]) ->
    {ok, Text} = file:read_file(In),
    Lines = re:split(Text, "\n"),
    Rows = [row(L) || L <- Lines, re:run(L, "^(TRACED|PROBED|OWN)\\(") =/= nomatch],
    Traced = [R || R = {_, _, Tag, _} <- Rows, Tag =/= none],
    ok = file:write_file(Out, [
        "%% Written by nif/event_kinds.escript.\n",
        [["-define(ETW_", Name, ", ", Number, ").\n"] || {Name, Number, _, _} <- Rows],
        [["fb_kind('", Tag, "') -> ", Number, ";\n"] || {_, Number, Tag, _} <- Traced],
        "fb_kind(_) -> none.\n",
        lists:join(";\n", [["fb_parse('", Tag, "', Event) -> fb_", string:lowercase(Layout), "(", Number, ", Event)"]
            || {_, Number, Tag, Layout} <- Traced]),
        ".\n"]).

%% Returns {Name, Number, Tag | none, Layout}. TAG_TERM is the layout of tags that have no row.
row(Line) ->
    case re:run(Line, "^(\\w+)\\((\\w+), (\\d+), \"?(\\w+)\"?, (?:\"\\w+\", )?(\\w+), ", [{capture, all_but_first, binary}]) of
        {match, [Row, Name, Number, _, Layout]} when Row =:= <<"OWN">>; Layout =:= <<"TAG_TERM">> -> {Name, Number, none, Layout};
        {match, [_, Name, Number, Tag, Layout]} -> {Name, Number, Tag, Layout};
        nomatch -> io:format(standard_error, "event_kinds.escript: malformed row: ~ts~n", [Line]), halt(1)
    end.
