/* SPDX-License-Identifier: Apache-2.0 */
#include "paint.h"

/*
 * The codes use only the eight standard colours, because terminal themes keep these readable. Bright black (90) is the
 * background of Solarized Dark, so less important text is dim instead.
 */
static const char *const codes[PAINT_WHATS] = {
    [PAINT_TIME] = "\033[2m",      [PAINT_NODE] = "\033[36m",    [PAINT_PID] = "\033[36m",
    [PAINT_NAME] = "\033[36m",     [PAINT_KIND] = "\033[32m",    [PAINT_RESULT] = "\033[35m",
    [PAINT_MESSAGE] = "\033[33m",  [PAINT_FAILURE] = "\033[31m", [PAINT_FUN] = "\033[1m",
    [PAINT_DURATION] = "\033[35m", [PAINT_ORIGIN] = "\033[2m",   [PAINT_TITLE] = "\033[4m",
    [PAINT_COMMAND] = "\033[36m",  [PAINT_LOSS] = "\033[1;31m",
};

void paint_code(struct buf *to, enum paint_what what)
{
    buf_puts(to, codes[what]);
}

void paint_plain(struct buf *to)
{
    buf_puts(to, "\033[0m");
}
