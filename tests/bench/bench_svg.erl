%% SPDX-License-Identifier: Apache-2.0
%% Draws a line chart as an SVG picture. The picture follows the light or dark theme of the reader.
-module(bench_svg).
-export([chart/1]).

-define(WIDTH, 760).
-define(HEIGHT, 400).
-define(LEFT, 70).
-define(RIGHT, 20).
-define(TOP, 70).
-define(BOTTOM, 55).

%% A chart: #{title, x, y => labels of the axes, xscale, yscale => log | linear, from => the lowest Y of a linear scale,
%% series => [{Name, [{X, Median, Low, High}]}]}. The line goes through the medians; bars show from Low to High. With a
%% logarithmic scale all values must be positive.
chart(Chart = #{title := Title, x := XLabel, y := YLabel, series := Series}) ->
    Points = [P || {_, Line} <- Series, P <- Line],
    Xs = axis(maps:get(xscale, Chart, log), [X || {X, _, _, _} <- Points], none),
    Ys = axis(maps:get(yscale, Chart, linear), [Y || {_, Median, Low, High} <- Points, Y <- [Median, Low, High]],
        maps:get(from, Chart, 0)),
    unicode:characters_to_binary([
        io_lib:format("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ~b ~b\" role=\"img\" font-size=\"13\" "
            "font-family=\"system-ui, sans-serif\">\n", [?WIDTH, ?HEIGHT]),
        "<title>", escaped(Title), "</title>\n", style(), "<rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        label(?LEFT, 24, "start", "title", Title),
        [grid_x(X, T) || T <- ticks(Xs), X <- [at_x(Xs, T)]],
        [grid_y(Y, T) || T <- ticks(Ys), Y <- [at_y(Ys, T)]],
        label((?LEFT + ?WIDTH - ?RIGHT) / 2, ?HEIGHT - 14, "middle", "axis", XLabel),
        io_lib:format("<text class=\"axis\" text-anchor=\"middle\" "
            "transform=\"translate(18 ~.1f) rotate(-90)\">~ts</text>\n",
            [(?TOP + ?HEIGHT - ?BOTTOM) / 2, escaped(YLabel)]),
        legend(Series),
        [line(I, Line, Xs, Ys) || {I, {_, Line}} <- lists:enumerate(Series)],
        "</svg>\n"]).

%% The colours of the lines differ in lightness, too.
style() ->
    ["<style>.page{fill:#fff}.grid{stroke:#ddd}text{fill:#333}.title{font-size:16px;font-weight:600}.tick{fill:#666}\n",
        rules(colours(light)), "path{fill:none!important;stroke-width:2}\n@media(prefers-color-scheme:dark){"
        ".page{fill:#0d1117}.grid{stroke:#30363d}text{fill:#e6edf3}.tick{fill:#9da7b3}\n",
        rules(colours(dark)), "}</style>\n"].

rules(Colours) ->
    [io_lib:format(".l~b{stroke:~s;fill:~s}", [I, Colour, Colour]) || {I, Colour} <- lists:enumerate(Colours)].

colours(light) -> ["#0b62c4", "#c2410c", "#15803d", "#7e22ce", "#525252", "#b91c5c"];
colours(dark) -> ["#58a6ff", "#f0883e", "#56d364", "#bc8cff", "#b0b0b0", "#ff7bac"].

%% {Scale, Lowest, Highest}
axis(log, Values, _) -> {log, exponent(floor, lists:min(Values)), exponent(ceil, lists:max(Values))};
axis(linear, Values, From) ->
    Lowest = case From of none -> lists:min(Values); _ -> min(From, lists:min(Values)) end,
    Step = step(lists:max(Values) - Lowest),
    {linear, Step * floor(Lowest / Step), Step * ceil(lists:max(Values) / Step)}.

exponent(Round, Value) -> math:Round(math:log10(Value) * 2) / 2. % half a decade

step(Range) ->
    Power = math:pow(10, floor(math:log10(max(Range, 1.0e-9)))),
    hd([Step || F <- [0.1, 0.2, 0.5, 1, 2], Step <- [F * Power], Range / Step =< 7]).

ticks({log, Low, High}) -> [math:pow(10, E) || E <- lists:seq(ceil(Low), floor(High))];
ticks({linear, Low, High}) ->
    Step = step(High - Low),
    [Low + I * Step || I <- lists:seq(0, round((High - Low) / Step))].

part({log, Low, High}, V) -> (math:log10(V) - Low) / max(1.0e-9, High - Low);
part({linear, Low, High}, V) -> (V - Low) / max(1.0e-9, High - Low).

at_x(Axis, V) -> ?LEFT + 10 + part(Axis, V) * (?WIDTH - ?LEFT - ?RIGHT - 20).
at_y(Axis, V) -> ?HEIGHT - ?BOTTOM - part(Axis, V) * (?HEIGHT - ?TOP - ?BOTTOM).

grid_x(X, Value) ->
    [rule(X, ?TOP, X, ?HEIGHT - ?BOTTOM), label(X, ?HEIGHT - ?BOTTOM + 18, "middle", "tick", number(Value))].

grid_y(Y, Value) ->
    [rule(?LEFT, Y, ?WIDTH - ?RIGHT, Y), label(?LEFT - 8, Y + 4.5, "end", "tick", number(Value))].

rule(X1, Y1, X2, Y2) ->
    io_lib:format("<line class=\"grid\" x1=\"~.1f\" y1=\"~.1f\" x2=\"~.1f\" y2=\"~.1f\"/>\n",
        [float(V) || V <- [X1, Y1, X2, Y2]]).

label(X, Y, Anchor, Class, Text) ->
    io_lib:format("<text class=\"~s\" x=\"~.1f\" y=\"~.1f\" text-anchor=\"~s\">~ts</text>\n",
        [Class, float(X), float(Y), Anchor, escaped(Text)]).

%% The entries share the width by the length of their names.
legend(Series) ->
    {Entries, _} = lists:mapfoldl(fun({I, {Name, _}}, X) ->
        {[io_lib:format("<rect class=\"l~b\" x=\"~b\" y=\"43\" width=\"14\" height=\"4\"/>\n", [I, X]),
            label(X + 20, 50, "start", "name", Name)], X + 38 + round(6.6 * length(Name))}
    end, ?LEFT, lists:enumerate(Series)),
    Entries.

line(I, Points, Xs, Ys) ->
    At = [{at_x(Xs, X), at_y(Ys, Y), at_y(Ys, Low), at_y(Ys, High)} || {X, Y, Low, High} <- lists:sort(Points)],
    Path = lists:join("L", [io_lib:format("~.1f ~.1f", [X, Y]) || {X, Y, _, _} <- At]),
    [io_lib:format("<path class=\"l~b\" d=\"M~s\"/>\n", [I, Path]),
        [io_lib:format("<line class=\"l~b\" x1=\"~.1f\" y1=\"~.1f\" x2=\"~.1f\" y2=\"~.1f\"/>"
            "<circle class=\"l~b\" cx=\"~.1f\" cy=\"~.1f\" r=\"3\"/>\n", [I, X, Low, X, High, I, X, Y])
            || {X, Y, Low, High} <- At]].

number(V) when V >= 1000 -> grouped(integer_to_list(round(V)));
number(V) when abs(V - round(V)) < 1.0e-6 -> integer_to_list(round(V));
number(V) -> string:trim(float_to_list(V, [{decimals, 4}, compact]), trailing, "0").

grouped(Digits) when length(Digits) > 3 ->
    {Front, Last} = lists:split(length(Digits) - 3, Digits),
    grouped(Front) ++ "," ++ Last;
grouped(Digits) -> Digits.

escaped(Text) -> lists:flatmap(fun($<) -> "&lt;"; ($>) -> "&gt;"; ($&) -> "&amp;"; (C) -> [C] end, lists:flatten(Text)).
