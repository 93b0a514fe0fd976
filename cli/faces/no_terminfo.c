/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Describes the terminal to libedit in a static program, if the system has no description of it, as in many containers.
 * Uses sequences of ECMA-48, which all terminals of today understand. Only libedit asks for the description.
 */
#include <stdlib.h>
#include <string.h>

#include "../ground/macros.h"

int __wrap_tgetent(char *buf, const char *name);
int __wrap_tgetflag(const char *id);
int __wrap_tgetnum(const char *id);
char *__wrap_tgetstr(const char *id, char **area);
int __real_tgetent(char *buf, const char *name);
int __real_tgetflag(const char *id);
int __real_tgetnum(const char *id);
char *__real_tgetstr(const char *id, char **area);

static const struct {
    const char *id, *text;
} capabilities[] = {
    {"bl", "\a"},       {"ce", "\033[K"},  {"cd", "\033[J"},   {"cl", "\033[H\033[J"}, {"cr", "\r"},
    {"dc", "\033[P"},   {"ho", "\033[H"},  {"kd", "\033[B"},   {"kh", "\033[H"},       {"kl", "\033[D"},
    {"kr", "\033[C"},   {"ku", "\033[A"},  {"le", "\b"},       {"nd", "\033[C"},       {"up", "\033[A"},
    {"@7", "\033[F"},   {"kD", "\033[3~"}, {"md", "\033[1m"},  {"me", "\033[m"},       {"us", "\033[4m"},
    {"ue", "\033[24m"}, {"so", "\033[7m"}, {"se", "\033[27m"},
};
static bool unknown; /* the last __wrap_tgetent() found no description of the terminal */

int __wrap_tgetent(char *buf, const char *name)
{
    int result = __real_tgetent(buf, name);

    unknown = result <= 0 && name && *name && strcmp(name, "dumb");
    return unknown ? 1 : result;
}

int __wrap_tgetflag(const char *id)
{
    return unknown ? !strcmp(id, "am") || !strcmp(id, "xn") : __real_tgetflag(id);
}

int __wrap_tgetnum(const char *id)
{
    return unknown ? -1 : __real_tgetnum(id);
}

char *__wrap_tgetstr(const char *id, char **area)
{
    static char text[16];

    if (!unknown)
        return __real_tgetstr(id, area);
    for (size_t i = 0; i < ARRAY_LEN(capabilities); i++)
        if (!strcmp(capabilities[i].id, id)) {
            strcpy(text, capabilities[i].text); /* libedit copies the text before its next call */
            return text;
        }
    return NULL;
}
