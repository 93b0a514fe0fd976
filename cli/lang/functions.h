/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declares the functions and operators of match specifications as rows of functions.def: where each is allowed and
 * which OTP has it. Elixir's names are translated in check_elixir.c.
 */
#ifndef ETRACE_FUNCTIONS_H
#define ETRACE_FUNCTIONS_H

#include "../ground/macros.h"

enum fn_place {
    PLACE_GUARD_CALL = 1,
    PLACE_GUARD_SEND = 2,
    PLACE_GUARD_RECV = 4,
    PLACE_BODY_CALL = 8,
    PLACE_BODY_SEND = 16,
    PLACE_BODY_RECV = 32,
    PLACE_ANY_GUARD = 7,
};

/* Bits of the types that a value may have. */
enum fn_type {
    TY_INT = 1,
    TY_FLOAT = 2,
    TY_BOOL = 4,
    TY_ATOM = 8, /* other than true and false */
    TY_LIST = 16,
    TY_TUPLE = 32,
    TY_MAP = 64,
    TY_BIN = 128,
    TY_PID = 256,
    TY_PORT = 512,
    TY_REF = 1024,
    TY_FUN = 2048,
    TY_ANY = 4095,
};

#define RES_ANY TY_ANY
#define RES_BOOL TY_BOOL
#define RES_INT TY_INT
#define RES_NUMBER (TY_INT | TY_FLOAT)
#define RES_ATOM TY_ATOM
#define RES_PID TY_PID
#define RES_BINARY TY_BIN

enum fn {
#define FN(id, ...) FN_##id,
#include "functions.def"
    FN_COUNT,
    FN_NONE = -1,
};

struct fn_row {
    const char *name;
    int least, most;
    const char *types;
    unsigned places;
    int otp;
    unsigned result; /* TY_ bits */
    bool fails;
    const char *doc;
};

const struct fn_row *fn_row(enum fn fn);
enum fn fn_find(struct str name, size_t nargs);   /* returns FN_NONE if no row has that name and arity */
unsigned fn_wants(enum fn fn, size_t arg);        /* returns the TY_ bits that argument `arg` (from 0) may have */
const char *fn_type_name(unsigned types);         /* returns for example "a list", or NULL if there is no short name */
enum fn fn_named(struct str name, enum fn after); /* iterates over the rows with this name; begin with FN_NONE */

#endif
