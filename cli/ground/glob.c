/* SPDX-License-Identifier: Apache-2.0 */
#include "glob.h"

#include "utf8.h"

bool glob_matches(struct str pattern, struct str text, bool one, char barrier)
{
    const char *p = pattern.at, *p_end = p + pattern.len, *t = text.at, *t_end = t + text.len;
    const char *star = NULL, *from = NULL;

    while (t < t_end) {
        if (p < p_end && *p == '*') {
            star = p++;
            from = t;
        } else if (p < p_end && one && *p == '?') {
            p++;
            utf8_next(&t, t_end);
        } else if (p < p_end && *p == *t) {
            p++;
            t++;
        } else if (star && !(barrier && *from == barrier)) {
            p = star + 1;
            t = ++from;
        } else {
            return false;
        }
    }
    while (p < p_end && *p == '*')
        p++;
    return p == p_end;
}
