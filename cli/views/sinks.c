/* SPDX-License-Identifier: Apache-2.0 */
/* The table of all views, in the order of the manual. */
#include <strings.h>

#include "sink.h"

extern const struct sink_type sink_text, sink_json, sink_tree, sink_summary, sink_hist, sink_flame, sink_folded,
    sink_speedscope, sink_perfetto, sink_callgrind, sink_sequence, sink_csv, sink_tsv, sink_record;

const struct sink_type *const sink_types[] = {
    &sink_text,     &sink_json,   &sink_tree,       &sink_summary,  &sink_hist,
    &sink_flame,    &sink_folded, &sink_speedscope, &sink_perfetto, &sink_callgrind,
    &sink_sequence, &sink_csv,    &sink_tsv,        &sink_record,   NULL,
};

const struct sink_type *sink_by_name(const char *name)
{
    for (size_t i = 0; sink_types[i]; i++)
        if (!strcmp(sink_types[i]->name, name))
            return sink_types[i];
    return NULL;
}

static bool ends_in(const char *name, size_t len, const char *ext, size_t ext_len)
{
    return len > ext_len && !strncasecmp(name + len - ext_len, ext, ext_len);
}

bool look_is_file(const struct look *look, const char *extension)
{
    return look->file && ends_in(look->file, strlen(look->file), extension, strlen(extension));
}

/* The longest extension wins: .speedscope.json before .json. */
const struct sink_type *sink_by_file(const char *file_name, const struct sink_type *preferred)
{
    const struct sink_type *best = NULL;
    size_t len = strlen(file_name), best_len = 0;

    for (size_t i = 0; sink_types[i]; i++) {
        const char *ext = sink_types[i]->extensions;
        while (ext && *ext) {
            size_t n = strcspn(ext, " ");
            if ((n > best_len || (n == best_len && sink_types[i] == preferred)) && ends_in(file_name, len, ext, n)) {
                best = sink_types[i];
                best_len = n;
            }
            ext += n + (ext[n] == ' ');
        }
    }
    return best;
}
