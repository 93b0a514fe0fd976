/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the bytes of the blocks of a recording, decompressed, so that a test can look for a secret: unpack FILE.etr */
#include <stdio.h>

#include "events/recfile.h"

int main(int argc, char **argv)
{
    struct source_item item;
    struct err e = {0};
    struct source *s = argc == 2 ? recfile_open(argv[1], &e) : NULL;
    enum source_got got = SOURCE_FAILED;

    while (s && (got = source_next(s, &item, -1, &e)) == SOURCE_ITEM)
        fwrite(item.bytes.at, 1, item.bytes.len, stdout);
    source_close(s);
    if (got != SOURCE_END)
        fprintf(stderr, "unpack: %s\n", e.text);
    return got != SOURCE_END;
}
