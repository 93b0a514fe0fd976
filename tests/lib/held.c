/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pauses a node at two points of loading the companion's library, through LD_PRELOAD.
 *
 * Before dlopen() of the library it writes the path to the file named by HELD, and waits until the test deletes that
 * file. After mkdir() of the library's directory it does the same with HELD_DIR, but only if that file exists and is
 * empty.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void hold(const char *path, const char *told)
{
    int fd = open(told, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || write(fd, path, strlen(path)) < 0 || write(fd, "\n", 1) < 0)
        _exit(125);
    close(fd);
    while (!access(told, F_OK))
        usleep(10000);
}

void *dlopen(const char *path, int mode)
{
    void *(*real)(const char *, int);
    void *found = dlsym(RTLD_NEXT, "dlopen");

    memcpy(&real, &found, sizeof real);
    if (path && strstr(path, "/etrace-") && getenv("HELD"))
        hold(path, getenv("HELD"));
    return real(path, mode);
}

int mkdir(const char *path, mode_t mode)
{
    int (*real)(const char *, mode_t);
    void *found = dlsym(RTLD_NEXT, "mkdir");

    memcpy(&real, &found, sizeof real);
    int made = real(path, mode);
    const char *told = getenv("HELD_DIR");
    struct stat now;
    if (!made && strstr(path, "/etrace-") && told && !stat(told, &now) && !now.st_size)
        hold(path, told);
    return made;
}
