/* SPDX-License-Identifier: Apache-2.0 */
#include "project.h"

#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/path.h"
#include "../ground/proc_text.h"

/* limit for the directories above the working directory; an umbrella project builds above its applications */
#define UP_MOST 3

/*
 * Finds mix or rebar3 among the arguments that follow -extra or --, which erl does not read itself. *ret_verb is the
 * argument after the tool.
 */
static const char *find_tool(const struct buf *cmdline, const char **ret_verb)
{
    bool plain = false;

    for (const char *t = cmdline->data; t; t = proc_next(cmdline, t)) {
        const char *name = path_base(t);
        plain |= !strcmp(t, "-extra") || !strcmp(t, "--");
        if (!plain || (strcmp(name, "mix") && strcmp(name, "rebar3")))
            continue;
        *ret_verb = proc_next(cmdline, t);
        *ret_verb = *ret_verb ? *ret_verb : "";
        return name;
    }
    return NULL;
}

/* Finds out the NAME of the build, which is in _build/NAME. */
static void build_name(const struct buf *environment, const struct buf *cmdline, const char *tool, const char *verb,
                       char ret[static 100])
{
    const bool mix = !strcmp(tool, "mix");
    const char *given = proc_env(environment, mix ? "MIX_ENV" : "REBAR_PROFILE");

    if (!given && mix)
        given = strcmp(verb, "test") ? "dev" : "test";
    else if (!given && !strcmp(verb, "as"))
        given = proc_next(cmdline, verb);
    else if (!given)
        given = strcmp(verb, "ct") && strcmp(verb, "eunit") ? "default" : "test";
    snprintf(ret, 100, "%s", given ? given : "default");
}

/* Finds the directory _build in the working directory or above it. Returns false if there is none with this build. */
static bool find_build(const char *cwd, const char *name, char ret[static PATH_MAX])
{
    char at[PATH_MAX];
    struct stat st;

    snprintf(at, sizeof at, "%s", cwd);
    for (int up = 0; up <= UP_MOST && *at; up++) {
        int n = snprintf(ret, PATH_MAX, "%s/_build/%s/lib", at, name);
        if (n > 0 && n < PATH_MAX && !stat(ret, &st) && S_ISDIR(st.st_mode))
            return true;
        char *slash = strrchr(at, '/');
        if (slash)
            *slash = 0;
    }
    return false;
}

static void add_paths(const char *lib, struct buf *to)
{
    /* consolidated protocols must come before the compiled ones */
    static const char *const kinds[] = {"consolidated", "ebin"};
    char pattern[PATH_MAX + 32];
    glob_t found;

    if (strpbrk(lib, "*?[\\:"))
        return;
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        snprintf(pattern, sizeof pattern, "%s/*/%s", lib, kinds[k]);
        if (glob(pattern, 0, NULL, &found))
            continue;
        for (size_t i = 0; i < found.gl_pathc; i++)
            buf_printf(to, "%s:", found.gl_pathv[i]);
        globfree(&found);
    }
}

void project_paths(long vm, struct buf *ret_paths)
{
    char pid[24], link[64], cwd[PATH_MAX], name[100], lib[PATH_MAX];
    struct buf cmdline = {0}, environment = {0};
    const char *verb, *tool;

    snprintf(pid, sizeof pid, "%ld", vm);
    snprintf(link, sizeof link, "/proc/%ld/cwd", vm);
    ssize_t n = readlink(link, cwd, sizeof cwd - 1);
    cwd[n > 0 ? n : 0] = 0;
    if (n > 0 && proc_read(pid, "cmdline", &cmdline) && proc_read(pid, "environ", &environment) &&
        (tool = find_tool(&cmdline, &verb))) {
        const char *path = !strcmp(tool, "mix") ? proc_env(&environment, "MIX_BUILD_PATH") : NULL;
        build_name(&environment, &cmdline, tool, verb, name);
        if (path && *path == '/')
            snprintf(lib, sizeof lib, "%s/lib", path);
        if ((path && *path == '/') || find_build(cwd, name, lib))
            add_paths(lib, ret_paths);
    }
    buf_release(&cmdline);
    buf_release(&environment);
}
