/* SPDX-License-Identifier: Apache-2.0 */
/* The answers of a simulated node to the requests of a preparation. */
#ifndef ETRACE_ANSWERS_H
#define ETRACE_ANSWERS_H

#include "erlang/etf_write.h"

/* Puts {[{m, Definition}], [], []}, or an empty list of definitions if the node does not know the record. */
static void put_record(bool known, struct buf *b)
{
    struct buf fields = {0};

    etf_list(&fields, 1);
    etf_tuple(&fields, 3);
    etf_atomz(&fields, "record_field");
    etf_int(&fields, 1);
    etf_tuple(&fields, 3);
    etf_atomz(&fields, "atom");
    etf_int(&fields, 1);
    etf_atomz(&fields, "a");
    etf_nil(&fields);
    etf_tuple(b, 3);
    if (known) {
        etf_list(b, 1);
        etf_tuple(b, 2);
        etf_bin(b, "m", 1);
        etf_bin(b, fields.data, fields.len);
    }
    etf_nil(b);
    etf_nil(b);
    etf_nil(b);
    buf_release(&fields);
}

/* The answer to SELECT and TRACE. */
static void put_result(struct buf *b)
{
    etf_map(b, 1);
    etf_atomz(b, "functions");
    etf_int(b, 3);
}

#endif
