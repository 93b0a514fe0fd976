#!/usr/bin/env escript
%% SPDX-License-Identifier: Apache-2.0
%% carry.escript OUT.c SELF FILE... - text files as one C file for cli/ground/carried.h: each by its name, with its bytes.

main([Out, _Self | Files]) ->
    Each = [begin {ok, Bytes} = file:read_file(F), {filename:basename(F), Bytes} end || F <- Files],
    ok = file:write_file(Out, [
        "/* Written by carry.escript. */\n#include \"carried.h\"\n\n#include <stddef.h>\n\n",
        [["static const char text", integer_to_list(I), "[] = {\n", lines(Bytes), "0,\n};\n\n"]
            || {I, {_, Bytes}} <- lists:enumerate(Each)],
        "const struct carried carried[] = {\n",
        [["    {\"", Name, "\", text", integer_to_list(I), ", ", integer_to_list(byte_size(Bytes)), "},\n"]
            || {I, {Name, Bytes}} <- lists:enumerate(Each)],
        "    {NULL, NULL, 0},\n};\n"]).

lines(<<Line:24/binary, Rest/binary>>) -> [line(Line) | lines(Rest)];
lines(Rest) -> line(Rest).

line(Bytes) -> [[["(char)", integer_to_list(B), ","] || <<B>> <= Bytes], "\n"].
