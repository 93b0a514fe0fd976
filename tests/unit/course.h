/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helpers of a test that runs random simulations: roll(), expect(). A course is one simulation. Its seed decides
 * the result of every roll().
 */
#ifndef ETRACE_COURSE_H
#define ETRACE_COURSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned course_seed;
static int64_t course_ms; /* simulated time; 0: the course has no clock */
static bool course_wrong; /* an expectation did not hold, in this course or an earlier one */

/* Returns how many of n courses a test runs: all with ETRACE_ALL, otherwise a quarter. */
__attribute__((unused)) static unsigned course_count(unsigned n)
{
    const char *all = getenv("ETRACE_ALL");

    return all && *all ? n : n / 4;
}

/* 0 to n - 1 */
static unsigned roll(unsigned n)
{
    course_seed = course_seed * 1103515245 + 12345;
    return (course_seed >> 16) % n;
}

/* Prints the first expectation that does not hold. */
__attribute__((unused)) static void expect(bool good, const char *what)
{
    if (!good && !course_wrong && course_ms)
        printf("# %s, at %lld\n", what, (long long)course_ms);
    else if (!good && !course_wrong)
        printf("# %s\n", what);
    course_wrong = course_wrong || !good;
}

#endif
