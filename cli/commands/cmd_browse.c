/* SPDX-License-Identifier: Apache-2.0 */
/* etrace browse: shows a recording on a full screen. Any part of it can be shown at once, searched and filtered. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../events/recfile.h"
#include "../ground/command_line.h"
#include "../ground/screen.h"
#include "../ground/tty.h"
#include "browse_growth.h"
#include "browse_screen.h"
#include "cmd.h"

/* Returns false, with an error, if a recording is not a regular file. Only a regular file can be read at any offset. */
static bool check_paths(const struct texts *paths, struct err *e)
{
    struct stat st;

    for (size_t i = 0; i < paths->count; i++) {
        const char *path = paths->items[i];
        if (!strcmp(path, "-") || (!stat(path, &st) && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))) {
            err_set(e, ERR_USAGE, "%s is no file that can be read more than once",
                    strcmp(path, "-") ? path : "standard input");
            command_line_hint(e, "etrace replay", path, "");
            return false;
        }
    }
    return true;
}

/*
 * Sets the segments and the size of the recording. If there are several files, there is one segment, and etrace does
 * not follow their growth.
 */
static bool find_segments(struct browse_recording *of, struct browse_growth *growth, struct err *e)
{
    of->segments = 1;
    return of->paths.count > 1 || browse_growth_begin(growth, of, e);
}

/* Returns the last segment that begins before an event that is newer than `newest`. */
static size_t segment_for(const struct browse_recording *of, const struct recordings *files, int64_t newest)
{
    uint64_t place;
    size_t segment = 0;

    if (files->nfiles == 1 && recfile_place(files->source, newest, &place))
        while (segment + 1 < of->segments && of->places[segment] <= place)
            segment++;
    return segment;
}

/* Limits the segments to those that --from and --to select. */
static void choose_part(struct browse_recording *of, const struct recordings *files)
{
    struct window begun = of->filter.window;
    int64_t newest;

    if (!recordings_begin(files, &begun, &newest))
        return;
    of->filter.window = begun;
    of->first = segment_for(of, files, newest);
    if (begun.last_ns != INT64_MAX)
        of->segments = MIN(of->segments, segment_for(of, files, begun.last_ns) + 2);
}

/* Returns true if the end of a single recording is shown, so that the list can follow its growth. */
static bool follows(const struct browse_recording *of)
{
    return of->paths.count == 1 && of->filter.window.to.kind == MOMENT_NONE;
}

static int browse_files(struct ctx *ctx, const struct texts *paths, const struct part_opts *part,
                        const struct view_opts *view)
{
    struct browse_recording of = {.paths = *paths};
    struct browse_filter filter = {.view = view, .part = part}, none;
    struct recordings files = {0};
    struct source_item item;
    struct buf request = {0}, title = {0};
    struct browse_growth growth = {.file.fd = -1};
    struct err e;

    of.look = (struct look){.colour = tty_colors(STDOUT_FILENO, (enum tty_color)view->color),
                            .terms = (enum terms_style)view->terms};
    ctx_let_die(ctx, true); /* looking for checkpoints and for a time may take long */
    bool ok = recordings_open(&files, paths, &e);
    if (ok) {
        const enum source_got got = source_next(files.source, &item, -1, &e);
        ok = got != SOURCE_FAILED;
        if (got == SOURCE_ITEM && item.type == SOURCE_SPECS)
            buf_str(&request, item.bytes);
    }
    filter.request = buf_view(&request);
    ok = ok && find_segments(&of, &growth, &e) &&
         recordings_window(part, paths, view->time == TIME_UTC, &of.filter.window, &e);
    if (ok)
        choose_part(&of, &files);
    recordings_close(&files);
    ctx_let_die(ctx, false);
    ok = ok && browse_filter_set(&filter, NULL, &of.filter, &none, &e);
    buf_puts(&title, paths->items[0]);
    if (paths->count > 1)
        buf_printf(&title, " and %zu more", paths->count - 1);
    const struct browse_options o = {
        .title = buf_cstr(&title),
        .time = (enum time_style)view->time,
        .growth = follows(&of) ? &growth : NULL,
    };
    const int status = ok ? browse_screen_run(ctx, &of, &filter, &o) : ctx_fail(ctx, &e);
    browse_filter_release(&filter);
    browse_growth_end(&growth);
    free(of.places);
    buf_release(&request);
    buf_release(&title);
    return status;
}

static bool browse_allowed(const struct texts *words, struct err *e)
{
    if (!words->count) {
        err_set(e, ERR_USAGE, "no recording given");
        err_hint(e, "etrace -o FILE.etr makes one");
        return false;
    }
    if (!screen_can(STDIN_FILENO, STDOUT_FILENO))
        return err_set(e, ERR_USAGE, "browse needs a terminal; etrace replay shows recordings without one");
    return check_paths(words, e);
}

static int cmd_browse_run(struct ctx *ctx, const struct cmd *self, char **argv)
{
    struct part_opts part = {0};
    struct view_opts view = VIEW_OPTS_INIT;
    struct talk_opts talk = {0};
    struct opt_use uses[] = {{&part_group, &part}, {&line_group, &view}, {&talk_group, &talk}};
    struct texts words = {0};
    struct err e;
    char **rest;
    int status = 0;

    if (cmd_options(ctx, self, uses, ARRAY_LEN(uses), argv, &words, &rest, &status))
        status = browse_allowed(&words, &e) ? browse_files(ctx, &words, &part, &view) : ctx_fail(ctx, &e);
    opts_release(uses, ARRAY_LEN(uses));
    texts_release(&words);
    return status;
}

static const struct opt_group *const groups[] = {&part_group, &line_group, &talk_group, NULL};
const struct cmd cmd_browse = {
    .name = "browse",
    .usage = "[OPTIONS] FILE...",
    .summary = "Shows recordings on a full screen, at once however large they are",
    .run = cmd_browse_run,
    .groups = groups,
};
