%% SPDX-License-Identifier: Apache-2.0
%% Builds a minimal release for embedded mode: kernel, stdlib and the modules of the tests, stripped.
-module(small).

-export([make/2]).

%% Builds the release below Dir; Lib has the modules of the tests. The last line of output is the emulator's directory
%% and the root of the release.
make(Dir, Lib) ->
    Ebin = filename:join([Dir, "tests-1", "ebin"]),
    ok = filelib:ensure_dir(filename:join(Ebin, "x")),
    Beams = filelib:wildcard(filename:join(Lib, "*.beam")),
    [{ok, _} = file:copy(Beam, filename:join(Ebin, filename:basename(Beam))) || Beam <- Beams],
    Modules = [list_to_atom(filename:basename(Beam, ".beam")) || Beam <- Beams],
    term(filename:join(Ebin, "tests.app"), {application, tests, [{description, ""}, {vsn, "1"}, {modules, Modules},
        {registered, []}, {applications, [kernel, stdlib]}]}),
    Name = filename:join(Dir, "small"),
    Erts = erlang:system_info(version),
    term(Name ++ ".rel", {release, {"small", "1"}, {erts, Erts}, [{kernel, version(kernel)}, {stdlib, version(stdlib)}, {tests, "1"}]}),
    Path = [no_warn_sasl, {path, [Ebin]}],
    ok = systools:make_script(Name, Path),
    ok = systools:make_tar(Name, tl(Path)),
    Root = filename:join(Dir, "root"),
    ok = erl_tar:extract(Name ++ ".tar.gz", [{cwd, Root}, compressed]),
    {ok, _} = beam_lib:strip_release(Root),
    io:format("~s ~s~n", [filename:join([code:root_dir(), "erts-" ++ Erts, "bin"]), Root]).

term(File, Term) ->
    ok = file:write_file(File, io_lib:format("~p.~n", [Term])).

version(Application) ->
    _ = application:load(Application),
    {ok, Version} = application:get_key(Application, vsn),
    Version.
