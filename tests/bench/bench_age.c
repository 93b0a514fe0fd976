/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures how old events are when etrace prints them. Reads lines that begin with a UTC time of day, and takes from
 * each read() the first whole line, the oldest one. At the end it prints the median and the 99th percentile in
 * milliseconds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MOST 1000000
#define DAY 86400.0

static char piece[1 << 20];
static double ages[MOST];

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double time_of_day(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (double)(t.tv_sec % 86400) + (double)t.tv_nsec / 1e9;
}

int main(void)
{
    size_t n = 0;
    ssize_t got;
    char last = '\n';

    while ((got = read(0, piece, sizeof piece - 1)) > 0) {
        double now = time_of_day(), seconds;
        int hours, minutes;
        char *line = piece;

        piece[got] = '\0';
        if (last != '\n') {
            line = strchr(piece, '\n');
            line = line ? line + 1 : piece + got;
        }
        last = piece[got - 1];
        char *end = strchr(line, '\n');
        if (!end)
            continue;
        *end = '\0';
        if (n == MOST || sscanf(line, "%d:%d:%lf", &hours, &minutes, &seconds) != 3)
            continue;
        double age = now - (hours * 3600 + minutes * 60 + seconds);
        ages[n++] = (age < -DAY / 2 ? age + DAY : age) * 1e3;
    }
    if (!n)
        return 1;
    qsort(ages, n, sizeof *ages, by_size);
    printf("%.3f %.3f\n", ages[n / 2], ages[(n - 1) * 99 / 100]);
    return 0;
}
