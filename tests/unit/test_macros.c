/* SPDX-License-Identifier: Apache-2.0 */
/* Tests what the macros of the ground do with their arguments. */
#include "ground/macros.h"
#include "tap.h"

static unsigned calls;

/* Returns another number at each call, as a clock does. */
static int64_t left(void)
{
    return 1 - (int64_t)calls++;
}

int main(void)
{
    int64_t n = MAX(left(), 0);
    is_number(n, 1, "MAX returns the value that it compared");
    is_number(calls, 1, "and evaluates its argument once");
    n = MIN(-1, MIN(left(), left()));
    is_number(n, -1, "MIN can contain another one");
    is_number(calls, 3, "each argument is evaluated once there, too");
    is_number((int64_t)MAX((size_t)3, 5), 5, "a number takes the type of the other argument");
    return tap_end();
}
