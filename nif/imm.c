/* SPDX-License-Identifier: Apache-2.0 */
#include "imm.h"

#include <string.h>

#include "etrace_wire.h"

#ifndef IMM_MAY_BE_KNOWN
#define IMM_MAY_BE_KNOWN true /* false: to test how the library behaves on a VM with other tag bits */
#endif

bool imm_known;
ERL_NIF_TERM imm_nil;
uint64_t imm_bytes;
uint32_t imm_tags, imm_kinds;
struct imm_turn imm_pids, imm_ports;

/* The tags of the external term format that local pids and ports use. */
enum {
    EXT_VERSION = 131,
    EXT_NEW_PID = 88,
    EXT_NEW_PORT = 89,
    EXT_V4_PORT = 120,
    EXT_ATOM_UTF8 = 118,
    EXT_SMALL_ATOM_UTF8 = 119
};

static uint64_t big_endian(const uint8_t *at, unsigned bytes)
{
    uint64_t value = 0;
    while (bytes--)
        value = value << 8 | *at++;
    return value;
}

static uint8_t *put_big_endian(uint8_t *at, uint64_t value, unsigned bytes)
{
    for (unsigned i = bytes; i--; value >>= 8)
        at[i] = (uint8_t)value;
    return at + bytes;
}

/* Returns the bytes of the encoded node name at `at`, or 0 if the format is unknown. */
static size_t node_bytes(const uint8_t *at, size_t room)
{
    size_t n = 0;
    if (room >= 2 && at[0] == EXT_SMALL_ATOM_UTF8)
        n = 2 + (size_t)at[1];
    else if (room >= 3 && at[0] == EXT_ATOM_UTF8)
        n = 3 + (size_t)big_endian(at + 1, 2);
    return n <= room ? n : 0;
}

uint64_t imm_ask_tracee(ErlNifEnv *env, ERL_NIF_TERM t)
{
    ErlNifPid pid;
    ErlNifPort port;
    ErlNifBinary bin;
    uint64_t data = 0;
    if (!enif_get_local_pid(env, t, &pid) && !enif_get_local_port(env, t, &port))
        return 0;
    if (!enif_term_to_binary(env, t, &bin))
        return 0;
    size_t node = bin.size > 2 ? node_bytes(bin.data + 2, bin.size - 2) : 0;
    if (node) {
        const uint8_t *at = bin.data + 2 + node;
        size_t rest = bin.size - 2 - node;
        if (bin.data[1] == EXT_NEW_PID && rest == 12)
            data = (big_endian(at, 4) & 0x0fffffff) | big_endian(at + 4, 4) << 28;
        else if (bin.data[1] == EXT_V4_PORT && rest == 12)
            data = big_endian(at, 8) | ETW_TRACEE_PORT;
        else if (bin.data[1] == EXT_NEW_PORT && rest == 8)
            data = big_endian(at, 4) | ETW_TRACEE_PORT;
    }
    enif_release_binary(&bin);
    return data;
}

static bool smalls_are_known(ErlNifEnv *env)
{
    static const int64_t some[] =
        {0, 1, -1, 127, 128, -32769, INT32_MAX, INT32_MIN, (INT64_C(1) << 59) - 1, -(INT64_C(1) << 59)};
    for (size_t i = 0; i < sizeof some / sizeof *some; i++)
        if (enif_make_int64(env, some[i]) != ((uint64_t)some[i] << 4 | IMM_SMALL))
            return false;
    return !imm_is_value(enif_make_int64(env, INT64_C(1) << 59)) && !imm_is_value(enif_make_int64(env, INT64_MIN));
}

static bool others_are_known(ErlNifEnv *env)
{
    static const char *const names[] = {"", "true", "false", "undefined", "ok", "erlang", "lists", "call"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!imm_is_atom(enif_make_atom(env, names[i])))
            return false;
    ERL_NIF_TERM cell = enif_make_list1(env, imm_nil), tuple = enif_make_tuple1(env, imm_nil);
    ERL_NIF_TERM map = enif_make_new_map(env), number = enif_make_double(env, 1.5), ref = enif_make_ref(env), bin;
    enif_make_new_binary(env, 1, &bin);
    if (imm_is_value(tuple) || imm_is_value(map) || imm_is_value(number) || imm_is_value(ref) || imm_is_value(bin))
        return false;
    if (imm_is_list(tuple) || imm_is_list(map) || imm_is_list(number) || imm_is_list(ref) || imm_is_list(bin))
        return false;
    return imm_is_list(cell) && imm_is_value(imm_nil) && !imm_is_atom(imm_nil) && !imm_is_small(imm_nil) &&
           !imm_is_pid(imm_nil) && !imm_is_port(imm_nil);
}

/* Makes local pids and ports with any number. `form` has the node name and the creation of a real pid. */
struct maker {
    ErlNifEnv *env;
    uint8_t form[512];
    size_t node;
    uint8_t creation[4];
};

static bool make_identifier(struct maker *maker, bool port, uint32_t number, uint32_t serial, ERL_NIF_TERM *ret_term)
{
    uint8_t *at = maker->form + maker->node;
    maker->form[1] = port ? EXT_V4_PORT : EXT_NEW_PID;
    at = port ? put_big_endian(at, number, 8) : put_big_endian(put_big_endian(at, number, 4), serial, 4);
    memcpy(at, maker->creation, 4);
    size_t bytes = (size_t)(at + 4 - maker->form);
    return enif_binary_to_term(maker->env, maker->form, bytes, ret_term, 0) == bytes;
}

/* Finds how the VM rotates the low bits, by making a pid or port for each bit. Checks the result with more numbers. */
static bool learn_turn(struct maker *maker, bool port, struct imm_turn *ret_turn)
{
    static const uint32_t numbers[] = {0, 1, 80, 32767, 32768, 1000000, 0x05555555, 0x07ffffff};
    static const uint32_t serials[] = {0, 1, 8191, 8192, 77777};
    struct imm_turn turn = {0};
    ERL_NIF_TERM t;
    uint64_t before = 0;
    unsigned by = 0;
    for (unsigned bit = 0; bit < 27; bit++) {
        if (!make_identifier(maker, port, UINT32_C(1) << bit, 0, &t))
            return false;
        uint64_t data = imm_data(t);
        if (bit == 0 && data)
            by = (unsigned)__builtin_ctzll(data);
        if (data < before && turn.mask == 0)
            turn = (struct imm_turn){.mask = (UINT64_C(1) << (bit + by)) - 1, .by = by, .rest = bit};
        before = data;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        for (size_t j = 0; j < sizeof serials / sizeof *serials; j++) {
            if (!make_identifier(maker, port, numbers[i], serials[j], &t) || !(port ? imm_is_port(t) : imm_is_pid(t)))
                return false;
            if (imm_unturn(&turn, imm_data(t)) != ((uint64_t)numbers[i] | (port ? 0 : (uint64_t)serials[j] << 28)))
                return false;
        }
    }
    *ret_turn = turn;
    return true;
}

static bool identifiers_are_known(ErlNifEnv *env)
{
    ErlNifPid self;
    ErlNifBinary bin;
    struct maker maker = {.env = env};
    if (!enif_self(env, &self) || !enif_term_to_binary(env, enif_make_pid(env, &self), &bin))
        return false;
    size_t node = bin.size > 2 ? node_bytes(bin.data + 2, bin.size - 2) : 0;
    bool known = node && node < sizeof maker.form - 32 && bin.data[0] == EXT_VERSION && bin.data[1] == EXT_NEW_PID &&
                 bin.size == 2 + node + 12;
    if (known) {
        memcpy(maker.form, bin.data, 2 + node);
        memcpy(maker.creation, bin.data + 2 + node + 8, 4);
        maker.node = 2 + node;
        known = learn_turn(&maker, false, &imm_pids) && learn_turn(&maker, true, &imm_ports);
    }
    enif_release_binary(&bin);
    ERL_NIF_TERM own = enif_make_pid(env, &self);
    return known && imm_is_pid(own) && imm_pid(own) == imm_ask_tracee(env, own);
}

void imm_check(ErlNifEnv *env)
{
    imm_nil = enif_make_list(env, 0);
    imm_known = IMM_MAY_BE_KNOWN && sizeof(ERL_NIF_TERM) == 8 && smalls_are_known(env) && others_are_known(env) &&
                identifiers_are_known(env);
    imm_bytes = imm_known ? 128 : 0;
    imm_tags = imm_known ? 3 : 0;
    imm_kinds = imm_known ? 15 : 0;
}
