/* SPDX-License-Identifier: Apache-2.0 */
#include "sink.h"

#include <stdlib.h>
#include <strings.h>

#include "../ground/mem.h"

#define VIEW(name) extern const struct sink_type sink_##name;
#include "sinks.def"
#undef VIEW

#define VIEW(name) &sink_##name,
const struct sink_type *const sink_types[] = {
#include "sinks.def"
    NULL,
};

struct sink *sink_open(const struct sink_type *type, const struct look *look, struct buf *out, struct err *e)
{
    if (type->table && look->sort.given && !grid_order_check(type->table, look->sort.given, e))
        return NULL;
    struct sink *s = mem_zalloc(type->size);

    s->type = type;
    s->out = out;
    s->look = *look;
    if (!type->open || type->open(s, e))
        return s;
    sink_free(s);
    return NULL;
}

void sink_free(struct sink *s)
{
    if (s->type->release)
        s->type->release(s);
    free(s);
}

const struct sink_type *sink_by_name(const char *name)
{
    for (size_t i = 0; sink_types[i]; i++)
        if (!strcmp(sink_types[i]->name, name))
            return sink_types[i];
    return NULL;
}

const struct sink_type *sink_of_item(const char *item, const char *brief)
{
    for (size_t i = 0; sink_types[i]; i++)
        if (sink_types[i]->item && sink_types[i]->brief && !strcmp(sink_types[i]->item, item) &&
            !strcmp(sink_types[i]->brief, brief))
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

/* Returns 2 if the view is the preferred one, 1 if it shows the same items as the preferred one, else 0. */
static int fits_beside(const struct sink_type *type, const struct sink_type *preferred)
{
    return type == preferred ? 2 : preferred && preferred->item && type->item && !strcmp(type->item, preferred->item);
}

/*
 * Finds the view for the longest extension of the file: .speedscope.json before .json. If several views have this
 * extension, `preferred` decides.
 */
static const struct sink_type *find_extension(const char *file_name, const struct sink_type *preferred, size_t *ret_len)
{
    const struct sink_type *best = NULL;
    size_t len = strlen(file_name), best_len = 0;

    for (size_t i = 0; sink_types[i]; i++) {
        const char *ext = sink_types[i]->extensions;
        while (ext && *ext) {
            size_t n = strcspn(ext, " ");
            if ((n > best_len ||
                 (n == best_len && best && fits_beside(sink_types[i], preferred) > fits_beside(best, preferred))) &&
                ends_in(file_name, len, ext, n)) {
                best = sink_types[i];
                best_len = n;
            }
            ext += n + (ext[n] == ' ');
        }
    }
    *ret_len = best_len;
    return best;
}

const struct sink_type *sink_by_file(const char *file_name, const struct sink_type *preferred)
{
    size_t len;

    return find_extension(file_name, preferred, &len);
}

size_t sink_extension_length(const char *file_name)
{
    size_t len;

    find_extension(file_name, NULL, &len);
    return len;
}
