/* SPDX-License-Identifier: Apache-2.0 */
#include "filter.h"

#include <stdlib.h>

#include "../fold/pairing.h"
#include "../ground/mem.h"
#include "../views/line.h"
#include "regex.h"
#include "rejections.h"
#include "where.h"

struct pattern {
    struct regex *regex;
    const struct grep *grep;
};

struct filter {
    struct pattern *patterns;
    size_t npatterns;
    struct wheres *wheres;
    struct rejections *rejections;
    bool any_where;
    const struct where *const *extra;
    size_t nextra;
    enum terms_style style;
    struct buf line, call_line;
    uint64_t errors, undecided;
};

static bool require_events(const struct where *w, struct err *e)
{
    return !where_is_of_rows(w) || err_set(e, ERR_USAGE, "aggregates are for --expect and --fail-on, not for filters");
}

struct filter *filter_new(const struct grep *greps, size_t ngreps, const struct where *const *wheres, size_t nwheres,
                          const struct spec *const *specs, size_t nspecs, enum terms_style style,
                          struct rejections *rejections, struct err *e)
{
    struct filter *f = mem_zalloc(sizeof(*f));

    f->style = style;
    f->rejections = rejections;
    f->extra = wheres;
    f->nextra = nwheres;
    f->any_where = nwheres > 0;
    f->wheres = wheres_new(style);
    bool good = true;
    for (size_t i = 0; i < nspecs && good; i++) {
        f->any_where |= specs[i]->nwhere > 0;
        for (size_t k = 0; k < specs[i]->nwhere && good; k++)
            good = wheres_prepare(f->wheres, specs[i]->where[k], e);
    }
    for (size_t i = 0; i < nwheres && good; i++)
        good = require_events(wheres[i], e) && wheres_prepare(f->wheres, wheres[i], e);
    f->patterns = mem_zalloc((ngreps + 1) * sizeof(*f->patterns));
    for (size_t i = 0; i < ngreps && good; i++) {
        struct regex *r = regex_new((struct str){greps[i].regex, strlen(greps[i].regex)}, e);
        if ((good = r != NULL))
            f->patterns[f->npatterns++] = (struct pattern){r, &greps[i]};
    }
    if (good)
        return f;
    filter_free(f);
    return NULL;
}

void filter_free(struct filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->npatterns; i++)
        regex_free(f->patterns[i].regex);
    free(f->patterns);
    wheres_free(f->wheres);
    buf_release(&f->line);
    buf_release(&f->call_line);
    free(f);
}

bool filter_is_empty(const struct filter *f)
{
    return !f->npatterns && !f->any_where;
}

static bool regex_finds(struct filter *f, struct regex *r, const struct buf *line, bool when_given_up)
{
    enum regex_found found = regex_search(r, buf_view(line));

    if (found == REGEX_GAVE_UP) {
        f->errors++;
        return when_given_up;
    }
    return found == REGEX_YES;
}

static enum filter_verdict by_patterns(struct filter *f, const struct event *e)
{
    static const struct paint plain = {false};
    const struct event *call = event_is_result(e) && e->call ? e->call->event : NULL;
    enum filter_verdict v = FILTER_PASS;

    if (!f->npatterns)
        return FILTER_PASS;
    buf_clear(&f->line);
    line_body(&f->line, e, f->style, &plain);
    if (call) {
        buf_clear(&f->call_line);
        line_body(&f->call_line, call, f->style, &plain);
    }
    for (size_t i = 0; i < f->npatterns; i++) {
        const struct pattern *p = &f->patterns[i];
        const bool invert = p->grep->invert;
        bool found =
            regex_finds(f, p->regex, &f->line, !invert) || (call && regex_finds(f, p->regex, &f->call_line, !invert));
        if (found == invert) {
            if (found || !e->expects_return) {
                if (!f->rejections->passed)
                    rejections_add_grep(f->rejections, p->grep, e);
                return FILTER_FAIL;
            }
            v = FILTER_LATER; /* the line of the result may match */
        }
    }
    return v;
}

/* Returns the verdict of two conditions that must both hold. */
static enum filter_verdict worse_verdict(enum filter_verdict a, enum filter_verdict b)
{
    static const enum filter_verdict worst_first[] = {FILTER_FAIL, FILTER_LATER, FILTER_UNKNOWN};

    for (size_t i = 0; i < ARRAY_LEN(worst_first); i++)
        if (a == worst_first[i] || b == worst_first[i])
            return worst_first[i];
    return FILTER_PASS;
}

/* Returns the verdict of two alternatives. It is enough if one holds. */
static enum filter_verdict better_verdict(enum filter_verdict a, enum filter_verdict b)
{
    static const enum filter_verdict best_first[] = {FILTER_PASS, FILTER_LATER, FILTER_UNKNOWN};

    for (size_t i = 0; i < ARRAY_LEN(best_first); i++)
        if (a == best_first[i] || b == best_first[i])
            return best_first[i];
    return FILTER_FAIL;
}

static enum filter_verdict by_condition(struct filter *f, const struct event *e, const struct where *condition)
{
    const enum filter_verdict v = where_holds(f->wheres, condition, e);

    if (v == FILTER_FAIL && !f->rejections->passed)
        rejections_add(f->rejections, f->wheres, condition, e);
    return v;
}

enum filter_verdict filter_spec(struct filter *f, const struct event *e, const struct spec *spec)
{
    enum filter_verdict v = spec && spec->nparts ? FILTER_FAIL : FILTER_PASS;

    for (size_t i = 0; spec && i < spec->nparts && v != FILTER_PASS; i++)
        v = better_verdict(v, filter_spec(f, e, spec->parts[i]));
    for (size_t i = 0; spec && i < spec->nwhere && v != FILTER_FAIL; i++)
        v = worse_verdict(v, by_condition(f, e, spec->where[i]));
    return v;
}

enum filter_verdict filter_event(struct filter *f, const struct event *e, const struct spec *spec)
{
    enum filter_verdict v = filter_spec(f, e, spec);

    for (size_t i = 0; i < f->nextra && v != FILTER_FAIL; i++)
        v = worse_verdict(v, by_condition(f, e, f->extra[i]));
    if (v != FILTER_FAIL)
        v = worse_verdict(v, by_patterns(f, e));
    f->undecided += v == FILTER_UNKNOWN;
    if (v == FILTER_FAIL || v == FILTER_LATER)
        return v;
    f->rejections->passed = true;
    return FILTER_PASS;
}

uint64_t filter_undecided(const struct filter *f)
{
    return f->undecided;
}

uint64_t filter_errors(const struct filter *f)
{
    return f->errors + wheres_errors(f->wheres);
}
