/* SPDX-License-Identifier: Apache-2.0 */
#include "actions.h"

#include <string.h>

static const struct action_row rows[] = {
#define ACTION(id, word, least, most, places, how, fn, doc) {word, least, most, places, how, fn, doc},
#include "actions.def"
};

const struct action_row *action_row(enum action action)
{
    return &rows[action];
}

enum action action_find(struct str word)
{
    for (int i = 0; i < ACTIONS; i++)
        if (strlen(rows[i].word) == word.len && !memcmp(rows[i].word, word.at, word.len))
            return (enum action)i;
    return ACTION_NONE;
}
