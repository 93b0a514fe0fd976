/* SPDX-License-Identifier: Apache-2.0 */
#include "value.h"

static const struct term_env no_names;

/* Makes an encoded term of a tag, a head of fixed size, and bytes. */
static struct value value_make(struct arena *a, uint8_t tag, const void *head, size_t size, struct str bytes)
{
    uint8_t *p = arena_alloc(a, 1 + size + bytes.len);

    p[0] = tag;
    memcpy(p + 1, head, size);
    if (bytes.len)
        memcpy(p + 1 + size, bytes.at, bytes.len);
    return (struct value){.at = p, .env = &no_names};
}

struct value value_take(struct arena *a, struct buf *encoded)
{
    const struct value v = {.at = (const uint8_t *)arena_strndup(a, encoded->data, encoded->len), .env = &no_names};

    buf_release(encoded);
    return v;
}

struct value value_int(struct arena *a, int64_t v)
{
    return value_make(a, ETW_T_INT64, &v, sizeof(v), STR(""));
}

struct value value_float(struct arena *a, double v)
{
    return value_make(a, ETW_T_FLOAT, &v, sizeof(v), STR(""));
}

struct value value_pid(struct arena *a, uint64_t tracee)
{
    const uint64_t id = tracee & ~ETW_TRACEE_PORT;

    return value_make(a, tracee & ETW_TRACEE_PORT ? ETW_T_PORT : ETW_T_PID, &id, sizeof(id), STR(""));
}

struct value value_atom(struct arena *a, struct raw name)
{
    const uint16_t len = (uint16_t)name.len;

    return value_make(a, ETW_T_ATOMTEXT, &len, sizeof(len), raw_view(name));
}

struct value value_bin(struct arena *a, struct str bytes)
{
    const struct __attribute__((packed)) {
        uint64_t size;
        uint32_t captured;
    } head = {bytes.len, (uint32_t)bytes.len};

    return value_make(a, ETW_T_BIN, &head, sizeof(head), bytes);
}

struct value value_bool(bool v)
{
    static const uint8_t yes[] = {ETW_T_ATOMTEXT, 4, 0, 't', 'r', 'u', 'e'},
                         no[] = {ETW_T_ATOMTEXT, 5, 0, 'f', 'a', 'l', 's', 'e'};

    return (struct value){.at = v ? yes : no, .env = &no_names};
}

bool value_is_bool(struct value v, bool *ret)
{
    if (v.state != VALUE_TERM)
        return false;
    *ret = wire_is_atom(v.env, v.at, "true");
    return *ret || wire_is_atom(v.env, v.at, "false");
}
