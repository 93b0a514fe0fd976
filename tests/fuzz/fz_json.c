/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the reader of JSON. The output is visible text, and it is read again as the same value. */
#include "ground/json_read.h"
#include "must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf first = {0}, second = {0};
    struct json *json;
    struct arena a;
    struct err e;

    arena_init(&a);
    if (json_read((struct str){(const char *)data, size}, &a, &json, &e)) {
        json_put_read(&first, json);
        must_be_shown(first.data, first.len);
        must(json_read(buf_view(&first), &a, &json, &e));
        json_put_read(&second, json);
        must(str_same(buf_view(&first), buf_view(&second)));
    }
    buf_release(&first);
    buf_release(&second);
    arena_release(&a);
    return 0;
}
