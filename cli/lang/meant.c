/* SPDX-License-Identifier: Apache-2.0 */
#include "meant.h"

#include <string.h>

#include "properties.h"

static const struct {
    enum meant_place place;
    unsigned surfaces;
    const char *written, *means;
} rows[] = {
#define MEANT(place, surfaces, written, means) {MEANT_##place, surfaces, written, means},
#include "meant.def"
};

const char *meant(const struct comp *c, enum meant_place place, struct str written)
{
    const unsigned surface = c->surface == SPEC_ELIXIR ? 2 : 1;

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        if (rows[i].place == place && rows[i].surfaces & surface && str_is(written, rows[i].written))
            return rows[i].means;
    return NULL;
}

const char *meant_property(struct comp *c, struct str written)
{
    for (size_t i = 0; i < PROPERTIES; i++) {
        const struct property_row *row = &property_rows[i];
        if (row->uses & PROPERTY_WHERE && str_is(written, row->name))
            return arena_printf(c->arena, "%s is %s: test it after 'where'", row->name,
                                row->uses & PROPERTY_NEEDS_RETURN ? "known after the call" : "a property of the event");
    }
    return NULL;
}

bool meant_note(struct comp *c, enum meant_place place, struct str written, const struct guess *guess)
{
    const char *means = meant(c, place, written);

    if (means)
        return diag_note(c, strchr(means, ' ') ? "%s" : "did you mean '%s'?", means);
    return guess ? diag_guess(c, guess) : false;
}
