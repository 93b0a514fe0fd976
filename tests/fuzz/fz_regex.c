/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes patterns and texts: the bytes up to the first NUL are the pattern, the rest is the text. Nothing may crash or
 * leak, and each match ends within its limits (libFuzzer's -timeout checks it). A rejected pattern has its position in
 * the line.
 */
#include <stdlib.h>
#include <string.h>

#include "pipeline/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    size_t len = nul ? (size_t)(nul - data) : size;
    struct err e = {0};
    char *pattern = malloc(len ? len : 1), *text = malloc(size - len ? size - len : 1);

    if (len)
        memcpy(pattern, data, len);
    if (size - len)
        memcpy(text, data + len, size - len);
    struct regex *r = regex_new((struct str){pattern, len}, &e);
    if (!r) {
        if (!e.text[0] || e.from > strlen(e.line))
            abort();
    } else {
        enum regex_found all = regex_search(r, (struct str){text, size - len}),
                         again = regex_search(r, (struct str){text, size - len});
        if (all != again)
            abort();
        regex_search(r, (struct str){NULL, 0});
    }
    regex_free(r);
    free(pattern);
    free(text);
    return 0;
}
