/* SPDX-License-Identifier: Apache-2.0 */
#include "recgrow.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../ground/loop.h"

#define QUIET_MS 1000 /* if nobody locks the file and it does not grow for this time, its writer counts as gone */

/*
 * Returns true if another process has locked the file to write it (out_claim()). The test takes a shared lock for a
 * moment, which would make a new writer fail. So call it only if somebody seems to write the file.
 */
static bool is_locked(const struct recgrow *g)
{
    if (!flock(g->fd, LOCK_SH | LOCK_NB)) {
        flock(g->fd, LOCK_UN);
        return false;
    }
    return errno == EWOULDBLOCK;
}

/* Opens g->seek if the file has its header already. */
static void begin_blocks(struct recgrow *g)
{
    struct etw_file h;

    if (pread(g->fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.magic, ETW_FILE_MAGIC, sizeof(h.magic)))
        return;
    recseek_open(&g->seek, g->fd, h.bytes);
    g->begun = true;
}

bool recgrow_open(struct recgrow *g, const char *path, struct err *e)
{
    *g = (struct recgrow){.path = path, .fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    if (g->fd < 0)
        return err_set(e, ERR_RUN, "cannot read %s: %s", path, strerror(errno));
    begin_blocks(g);
    while (g->begun && !recseek_grow(&g->seek))
        ;
    g->writes = !g->seek.finished && is_locked(g);
    g->grown_at = loop_now();
    return true;
}

void recgrow_close(struct recgrow *g)
{
    if (g->begun)
        recseek_close(&g->seek);
    if (g->fd > 0)
        close(g->fd);
    *g = (struct recgrow){.fd = -1};
}

static bool is_same_file(const struct recgrow *g, const struct stat *own)
{
    struct stat st;

    return !stat(g->path, &st) && st.st_dev == own->st_dev && st.st_ino == own->st_ino;
}

enum recgrow_news recgrow_look(struct recgrow *g)
{
    const uint64_t whole = g->seek.whole, size = g->seek.size;
    struct stat own;

    if (fstat(g->fd, &own) || (uint64_t)own.st_size < whole)
        return RECGROW_CUT;
    if (!is_same_file(g, &own))
        return RECGROW_REPLACED;
    if (!g->begun)
        begin_blocks(g);
    if (g->begun && (g->behind || (uint64_t)own.st_size != size))
        g->behind = !recseek_grow(&g->seek);
    if (g->seek.size != size)
        g->grown_at = loop_now();
    if (g->seek.whole > whole) {
        g->writes = true;
        return RECGROW_MORE;
    }
    if (!g->writes || loop_now() - g->grown_at < QUIET_MS || is_locked(g))
        return RECGROW_SAME;
    g->writes = false;
    return RECGROW_ENDED;
}
