/* SPDX-License-Identifier: Apache-2.0 */
#include "rex.h"

#include <string.h>

#include "../erlang/etf.h"
#include "../erlang/etf_write.h"

static void put_raw(struct buf *b, const struct etf *term)
{
    buf_add(b, term->at, (size_t)(term->end - term->at));
}

/*
 * The message is {'$gen_cast', {cast, erl_eval, exprs, [Expressions, [{Variable, Value}], none], user}}. It uses
 * exprs/3, because exprs/2 first checks the expressions.
 */
bool rex_begin(struct buf *b, const unsigned char *packed, size_t len, const struct node_pid *client, size_t arity,
               struct err *e)
{
    struct etf all, variable, forms;

    if (!etf_open_version(&all, packed, len) || !etf_get_tuple(&all, 2) || !etf_take(&all, &variable) ||
        !etf_take(&all, &forms))
        return err_set(e, ERR_RUN, "this build of etrace is broken: its companion cannot be read");
    etf_version(b);
    etf_tuple(b, 2);
    etf_atomz(b, "$gen_cast");
    etf_tuple(b, 5);
    etf_atomz(b, "cast");
    etf_atomz(b, "erl_eval");
    etf_atomz(b, "exprs");
    etf_list(b, 3);
    put_raw(b, &forms);
    etf_list(b, 1);
    etf_tuple(b, 2);
    put_raw(b, &variable);
    etf_tuple(b, arity);
    etf_pid(b, (struct str){client->node, strlen(client->node)}, client->id, client->serial, client->creation);
    return true;
}

void rex_end(struct buf *b)
{
    etf_nil(b); /* ends the list of bindings */
    etf_atomz(b, "none");
    etf_nil(b); /* ends the list of arguments */
    etf_atomz(b, "user");
}
