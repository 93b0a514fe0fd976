/* SPDX-License-Identifier: Apache-2.0 */
#include "assert.h"

#include <stdlib.h>

#include "../ground/mem.h"
#include "../views/line.h"

struct asserts {
    const struct where *const *expects, *const *fails;
    size_t nexpects, nfails;
    size_t unmet;
    bool *met;
    size_t failed; /* index of the first of `fails` that held; nfails: none */
    struct buf line;
    struct wheres *wheres;
};

struct asserts *asserts_new(const struct where *const *expects, size_t nexpects, const struct where *const *fails,
                            size_t nfails, struct err *e)
{
    struct asserts *a = mem_zalloc(sizeof(*a));
    bool good = true;

    a->expects = expects;
    a->nexpects = a->unmet = nexpects;
    a->fails = fails;
    a->nfails = a->failed = nfails;
    a->met = mem_zalloc(nexpects + 1);
    a->wheres = wheres_new(TERMS_AUTO);
    for (size_t i = 0; i < nexpects && good; i++)
        good = wheres_prepare(a->wheres, expects[i], e);
    for (size_t i = 0; i < nfails && good; i++)
        good = wheres_prepare(a->wheres, fails[i], e);
    if (good)
        return a;
    asserts_free(a);
    return NULL;
}

void asserts_free(struct asserts *a)
{
    if (!a)
        return;
    wheres_free(a->wheres);
    buf_release(&a->line);
    free(a->met);
    free(a);
}

void asserts_event(struct asserts *a, const struct event *e)
{
    static const struct paint plain = {false};

    for (size_t i = 0; i < a->nexpects && a->unmet; i++)
        if (!a->met[i] && where_holds(a->wheres, a->expects[i], e) == FILTER_PASS) {
            a->met[i] = true;
            a->unmet--;
        }
    for (size_t i = 0; i < a->nfails && a->failed == a->nfails; i++)
        if (where_holds(a->wheres, a->fails[i], e) == FILTER_PASS) {
            a->failed = i;
            line_body(&a->line, e, TERMS_AUTO, &plain);
        }
}

bool asserts_decided(const struct asserts *a)
{
    return a->failed < a->nfails || (a->nexpects && !a->unmet && !a->nfails);
}

bool asserts_failed(const struct asserts *a, size_t *ret_index, struct str *ret_line)
{
    if (a->failed == a->nfails)
        return false;
    *ret_index = a->failed;
    *ret_line = buf_view(&a->line);
    return true;
}

bool asserts_met(const struct asserts *a, size_t expect)
{
    return a->met[expect];
}
