/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the distribution options of a local virtual machine from its command line in /proc. */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../ground/utf8.h"
#include "find.h"

#define ARGUMENTS_MAX (256u << 10)

static const char *arguments_next(const char *at, const char *end)
{
    at += strlen(at) + 1;
    return at < end ? at : NULL;
}

/* Arguments after -extra belong to the program, not to the virtual machine. */
static void read_arguments(const char *at, const char *end, struct arguments *a)
{
    for (const char *value; at && (value = arguments_next(at, end)) && strcmp(at, "-extra"); at = value)
        if ((!strcmp(at, "-name") || !strcmp(at, "-sname")) && strlen(value) <= NODE_NAME_MAX &&
            utf8_valid(value, strlen(value)))
            memcpy(a->name, value, strlen(value) + 1);
        else if (!strcmp(at, "-dist_listen"))
            a->deaf = !strcmp(value, "false");
}

bool find_arguments(long ospid, struct arguments *ret)
{
    char path[64], *text = malloc(ARGUMENTS_MAX + 1);
    FILE *f;

    *ret = (struct arguments){0};
    snprintf(path, sizeof path, "/proc/%ld/cmdline", ospid);
    f = text ? fopen(path, "re") : NULL;
    size_t len = f ? fread(text, 1, ARGUMENTS_MAX, f) : 0;
    if (f)
        fclose(f);
    if (len) {
        text[len] = 0;
        read_arguments(text, text + len, ret);
    }
    free(text);
    return len;
}

static bool is_alive_part(const char *name, const char *alive)
{
    size_t len = strlen(alive);

    return !strncmp(name, alive, len) && name[len] == '@';
}

static bool listens(long ospid, int port)
{
    int ports[16];
    size_t count;
    struct err ignored;

    if (!find_listening(ospid, ports, sizeof ports / sizeof *ports, &count, &ignored))
        return false;
    for (size_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

/* The process must also listen on the port, because any user can start a process with this name on its command line. */
bool node_full_name(const char *alive, int port, char ret[NODE_NAME_MAX + 1])
{
    DIR *dir = opendir("/proc");
    struct dirent *d;
    struct arguments a;
    bool found = false;

    while (dir && !found && (d = readdir(dir))) {
        long ospid = isdigit((unsigned char)*d->d_name) ? strtol(d->d_name, NULL, 10) : 0;
        found = ospid && find_arguments(ospid, &a) && is_alive_part(a.name, alive) && listens(ospid, port);
    }
    if (dir)
        closedir(dir);
    if (found)
        memcpy(ret, a.name, sizeof a.name);
    return found;
}
