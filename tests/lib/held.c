/*
 * LD_PRELOAD for a node: where it is about to map the companion's library, its path is written to the file that HELD names, and
 * it waits for as long as that file is there. Where it has just made the directory for that, the same with HELD_DIR, if there is
 * such a file and it is empty.
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
