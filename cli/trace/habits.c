/* SPDX-License-Identifier: Apache-2.0 */
#include "habits.h"

#include <stdio.h>
#include <string.h>

#include "../views/sink.h"

static const struct {
    enum habit_place place;
    const char *written, *means;
} rows[] = {
#define HABIT(place, written, means) {HABIT_##place, written, means},
#include "habits.def"
};

const char *habit_meaning(enum habit_place place, struct str written)
{
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].place == place && str_is(written, rows[i].written))
            return rows[i].means;
    return NULL;
}

const struct sink_type *habit_view(struct str written)
{
    char name[32], file[40];

    if (!written.len || written.len >= sizeof name || memchr(written.at, '.', written.len))
        return NULL;
    snprintf(name, sizeof name, "%.*s", (int)written.len, written.at);
    snprintf(file, sizeof file, "x.%s", name);
    const char *means = habit_meaning(HABIT_VIEW, written);
    const struct sink_type *type = sink_by_name(means ? means : name);
    return type ? type : sink_by_file(file, NULL);
}

bool habit_command_hint(const char *written, const char *prefix, struct err *e)
{
    const char *means = habit_meaning(HABIT_COMMAND, (struct str){written, strlen(written)});

    if (means && strchr(means, ' '))
        err_hint(e, "%s", means);
    else if (means)
        err_hint(e, "did you mean %s%s?", prefix, means);
    return means != NULL;
}
