/* SPDX-License-Identifier: Apache-2.0 */
#include "opts.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "../ground/mem.h"
#include "../ground/near.h"
#include "../ground/units.h"
#include "../lang/actions.h"
#include "../trace/habits.h"
#include "../views/sink.h"

void opts_release(const struct opt_use *uses, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < uses[i].group->count; k++)
            if (uses[i].group->rows[k].type == OPT_TEXTS || uses[i].group->rows[k].type == OPT_SET)
                texts_release((void *)((char *)uses[i].target + uses[i].group->rows[k].offset));
}

/* Reads a number with a unit of the kind, in upper or lower case; `plain` is the factor of a number without a unit. */
static bool with_unit(const char *text, enum unit_kind kind, double plain, int64_t *ret)
{
    static const struct str multiples[] = {STR("kB"), STR("MB"), STR("GB")};
    char *end;

    errno = 0;
    double value = strtod(text, &end);
    if (end == text || errno || value < 0 || !isdigit((unsigned char)text[0]))
        return false;
    struct str name = {end, strlen(end)};
    for (size_t i = 0; i < ARRAY_LEN(multiples) && kind == UNIT_SIZE; i++)
        if (name.len == 1 && !strncasecmp(name.at, multiples[i].at, 1))
            name = multiples[i]; /* an option takes 8k for 8kB */
    const struct unit *unit = unit_find(name, true);
    double factor = *end ? 0 : plain;
    if (unit && unit->kind == kind)
        factor = unit->factor;
    if (factor <= 0 || value * factor > 9e18)
        return false;
    *ret = (int64_t)(value * factor + 0.5);
    return true;
}

bool opt_duration(const char *text, int64_t *ret_ns)
{
    return with_unit(text, UNIT_DURATION, 1e9, ret_ns);
}

bool opt_size(const char *text, int64_t *ret_bytes)
{
    return with_unit(text, UNIT_SIZE, 1, ret_bytes);
}

static bool set_number(int64_t *to, const char *value)
{
    char *end;

    errno = 0;
    long long n = strtoll(value, &end, 10);
    if (end == value || *end || errno || n < 0)
        return false;
    *to = n;
    return true;
}

bool opt_percent(const char *text, int64_t *ret_hundredths)
{
    int64_t n = 0, scale = 100;
    const char *at = text;

    for (; *at >= '0' && *at <= '9' && n <= 100; at++)
        n = n * 10 + (*at - '0');
    if (at == text)
        return false;
    n *= 100;
    if (*at == '.' && at[1] >= '0' && at[1] <= '9')
        for (at++; *at >= '0' && *at <= '9' && scale > 1; at++)
            n += (*at - '0') * (scale /= 10);
    at += *at == '%';
    if (*at || n < 1 || n > 10000)
        return false;
    *ret_hundredths = n;
    return true;
}

bool opt_choice(const char *words, const char *text, int *ret)
{
    size_t len = strlen(text);

    for (int i = 0;; i++) {
        size_t n = strcspn(words, "|");
        if (n == len && !strncmp(words, text, n)) {
            *ret = i;
            return true;
        }
        if (!words[n])
            return false;
        words += n + 1;
    }
}

static bool takes_value(const struct opt *o)
{
    return o->arg != NULL;
}

/* Names the words of a choice, and the option that another tool has under this name. */
static void hint_of_choice(const struct opt *o, struct err *e)
{
    const char *means = habit_meaning(HABIT_OPTION, (struct str){o->name, strlen(o->name)});

    if (means)
        err_hint(e, "one of %s, or did you mean --%s?", o->arg, means);
    else
        err_hint(e, "one of %s", o->arg);
}

static bool set_option(const struct opt *o, void *target, const char *value, struct err *e)
{
    void *to = (char *)target + o->offset;
    bool ok = true;

    if (o->table && !grid_order_check(o->table, value, e))
        return false;
    switch (o->type) {
    case OPT_FLAG:
        *(bool *)to = true;
        break;
    case OPT_OFF:
        *(bool *)to = false;
        break;
    case OPT_COUNT:
        *(int *)to += 1;
        break;
    case OPT_TEXT:
    case OPT_TEXTS:
    case OPT_SET:
        ok = *value || strcmp(o->arg, "FILE") != 0;
        if (ok && o->type == OPT_TEXT)
            *(const char **)to = value;
        else if (ok && !(o->type == OPT_SET && texts_has(to, value)))
            texts_add(to, value);
        break;
    case OPT_NUMBER:
        ok = set_number(to, value);
        break;
    case OPT_POSITIVE:
        ok = set_number(to, value) && *(int64_t *)to > 0;
        break;
    case OPT_DURATION:
        ok = opt_duration(value, to) && *(int64_t *)to > 0;
        break;
    case OPT_SIZE:
        ok = opt_size(value, to);
        break;
    case OPT_PERCENT:
        ok = opt_percent(value, to);
        break;
    case OPT_FRACTION:
        ok =
            !strncmp(value, "1/", 2) && set_number(to, value + 2) && *(int64_t *)to > 0 && *(int64_t *)to <= UINT32_MAX;
        break;
    case OPT_CHOICE:
        ok = opt_choice(o->arg, value, to);
        break;
    case OPT_CHOSEN:
        *(int *)to = o->chosen;
        break;
    }
    if (ok)
        return true;
    err_set(e, ERR_USAGE, "--%s does not take '%s'", o->name, value);
    switch (o->type) {
    case OPT_NUMBER:
        err_hint(e, "a whole number, 0 or more");
        break;
    case OPT_POSITIVE:
        err_hint(e, "a whole number, 1 or more");
        break;
    case OPT_DURATION:
        err_hint(e, "a duration such as 500ms, 10s or 2m, not 0");
        break;
    case OPT_SIZE:
        err_hint(e, "a size such as 512, 4k, 1MB or 2GB");
        break;
    case OPT_PERCENT:
        err_hint(e, "a share such as 5%% or 0.5%%, up to 100%%, not 0");
        break;
    case OPT_FRACTION:
        err_hint(e, "a fraction such as 1/100");
        break;
    case OPT_CHOICE:
        hint_of_choice(o, e);
        break;
    case OPT_TEXT:
    case OPT_TEXTS:
        err_hint(e, "the name of a file");
        break;
    case OPT_CHOSEN:
    case OPT_COUNT:
    case OPT_FLAG:
    case OPT_OFF:
    case OPT_SET:
        break;
    }
    return false;
}

static const struct opt *opts_find(const struct opt_use *uses, size_t n, char letter, const char *name, size_t len,
                                   void **ret_target)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < uses[i].group->count; k++) {
            const struct opt *o = &uses[i].group->rows[k];
            bool hit = letter ? o->letter == letter : strlen(o->name) == len && !memcmp(o->name, name, len);
            if (hit) {
                *ret_target = uses[i].target;
                return o;
            }
        }
    return NULL;
}

static bool has_option(const struct opt_use *uses, size_t n, const char *name, size_t len)
{
    void *ignored;

    return opts_find(uses, n, 0, name, len, &ignored);
}

/*
 * Sets the hint if another tool has an option of this name, or if a view or an action has the name. Returns true if
 * similar names must not be suggested: it set a hint, or it knows that no option does what the user means.
 */
static bool hint_of_habit(const struct opt_use *uses, size_t n, struct str name, struct err *e)
{
    const char *means = habit_meaning(HABIT_OPTION, name);
    void *ignored;
    const struct opt *as = opts_find(uses, n, 0, "as", 2, &ignored);
    const struct sink_type *view = as && as->type == OPT_TEXT ? habit_view(name) : NULL;

    if (means && strchr(means, ' ') && has_option(uses, n, means + 2, strcspn(means + 2, " "))) {
        err_hint(e, "%s", means);
        return true;
    }
    if (means && has_option(uses, n, means, strlen(means))) {
        err_hint(e, "did you mean --%s?", means);
        return true;
    }
    if (view) {
        err_hint(e, "did you mean --as %s?", view->name);
        return true;
    }
    if (has_option(uses, n, "where", 5) && !has_option(uses, n, name.at, name.len) &&
        action_find(name) != ACTION_NONE) {
        err_hint(e, "%.*s is a part of an expression: 'lists:seq/2 -> %.*s'", (int)name.len, name.at, (int)name.len,
                 name.at);
        return true;
    }
    return means;
}

/* Rejects an unknown option. `text` is the option with its dashes, and `name` is without them. */
static bool reject_unknown(const struct opt_use *uses, size_t n, struct str text, struct str name, struct err *e)
{
    struct near near = near_start(name.at, name.len);

    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < uses[i].group->count; k++)
            near_try(&near, uses[i].group->rows[k].name);
    err_set(e, ERR_USAGE, "unknown option '%.*s'", (int)text.len, text.at);
    if (!hint_of_habit(uses, n, name, e) && near.best)
        err_hint(e, "did you mean --%s?", near.best);
    return false;
}

/* Finds the long option NAME or NAME=VALUE. Sets *ret_value to the value, or to NULL if there is no '='. */
static const struct opt *find_long(const struct opt_use *uses, size_t n, const char *text, void **ret_target,
                                   const char **ret_value)
{
    const size_t len = strcspn(text, "=");

    *ret_value = text[len] ? text + len + 1 : NULL;
    return opts_find(uses, n, 0, text, len, ret_target);
}

static bool long_option(const struct opt_use *uses, size_t n, char ***at, struct err *e)
{
    const char *text = **at + 2, *value;
    const size_t len = strcspn(text, "=");
    void *target;
    const struct opt *o = find_long(uses, n, text, &target, &value);

    if (!o)
        return reject_unknown(uses, n, (struct str){**at, len + 2}, (struct str){text, len}, e);
    if (!takes_value(o))
        return value ? err_set(e, ERR_USAGE, "--%s takes no value", o->name) : set_option(o, target, NULL, e);
    if (!value)
        value = *++*at;
    if (!value)
        return err_set(e, ERR_USAGE, "--%s needs a value: %s", o->name, o->arg);
    return set_option(o, target, value, e);
}

/*
 * Returns true if the word is the name of a long option. erl writes long options with one dash, and `-node shop` must
 * not be parsed as `-n ode`.
 */
static bool is_long(const struct opt_use *uses, size_t n, struct str word)
{
    return word.len > 1 && has_option(uses, n, word.at, word.len);
}

static bool read_letters(const struct opt_use *uses, size_t n, char ***at, struct err *e)
{
    struct str text = {**at, strlen(**at)}, word = {text.at + 1, strcspn(text.at + 1, "=")};

    for (const char *c = word.at; *c; c++) {
        void *target;
        const struct opt *o = is_long(uses, n, word) ? NULL : opts_find(uses, n, *c, NULL, 0, &target);

        if (!o)
            return reject_unknown(uses, n, text, word, e);
        if (takes_value(o)) {
            const char *value = c[1] ? c + 1 : *++*at;
            if (!value)
                return err_set(e, ERR_USAGE, "-%c needs a value: %s", *c, o->arg);
            return set_option(o, target, value, e);
        }
        if (!set_option(o, target, NULL, e))
            return false;
    }
    return true;
}

const struct opt *opts_with_value(const struct opt_use *uses, size_t n, const char *argument, const char **ret_value)
{
    const struct str word = {argument + 1, strcspn(argument + 1, "=")};
    const struct opt *o;
    void *target;

    if (argument[1] == '-')
        return (o = find_long(uses, n, argument + 2, &target, ret_value)) && takes_value(o) ? o : NULL;
    for (const char *c = word.at; *c && !is_long(uses, n, word); c++) {
        o = opts_find(uses, n, *c, NULL, 0, &target);
        *ret_value = c[1] ? c + 1 : NULL;
        if (!o || takes_value(o))
            return o;
    }
    return NULL;
}

bool opts_parse(const struct opt_use *uses, size_t nuses, char **argv, struct texts *ret_words, char ***ret_rest,
                struct err *e)
{
    *ret_rest = NULL;
    for (char **at = argv; *at; at++) {
        if (!strcmp(*at, "--")) {
            *ret_rest = at + 1;
            return true;
        }
        if ((*at)[0] != '-' || !(*at)[1] || (*at)[1] == '>') {
            texts_add(ret_words, *at);
            continue;
        }
        bool ok = (*at)[1] == '-' ? long_option(uses, nuses, &at, e) : read_letters(uses, nuses, &at, e);
        if (!ok)
            return false;
    }
    return true;
}
