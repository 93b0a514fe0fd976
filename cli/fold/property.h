/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the properties of lang/properties.def from events. A value has a type; `where`, --fields and JSON convert or
 * print a value in their own ways (pipeline/where.c, fields.c, sink_json.c). A value points into its event.
 */
#ifndef ETRACE_PROPERTY_H
#define ETRACE_PROPERTY_H

#include "../events/event.h"
#include "../lang/properties.h"
#include "pairing.h"

/* The type of a value. The comments say which member of struct typed_value has the value. */
enum property_type {
    PROPERTY_IS_ABSENT,   /* the event has no such property */
    PROPERTY_IS_LATER,    /* the value comes with the result of the call */
    PROPERTY_IS_UNKNOWN,  /* the value was not captured; `at` is NULL or the term that was captured in its place */
    PROPERTY_IS_TERM,     /* at: a term */
    PROPERTY_IS_TERMS,    /* the terms of the event */
    PROPERTY_IS_INT,      /* number: an integer */
    PROPERTY_IS_DURATION, /* number: nanoseconds, printed with a unit */
    PROPERTY_IS_MICROS,   /* number: nanoseconds, printed in microseconds */
    PROPERTY_IS_TEXT,     /* text: a safe text; `where` makes it an atom */
    PROPERTY_IS_NAME,     /* name: a raw text, to be escaped; `where` makes it an atom */
    PROPERTY_IS_ATOM,     /* name: an atom, printed in Erlang or Elixir syntax */
    PROPERTY_IS_TRACEE,   /* the traced process or port */
    PROPERTY_IS_PID,      /* the traced process or port, printed as a term */
    PROPERTY_IS_FUNCTION, /* the function of the event; if `at` is set, the tuple {M,F,A} or {M,F,Args} at `at` */
    PROPERTY_IS_PLACE,    /* at: the tuple {M,F,A} or {M,F,A,{File,Line}} of a caller */
    PROPERTY_IS_STACK,    /* at: a list of such tuples, the innermost call first */
    PROPERTY_IS_CHARS,    /* at: a binary with text */
    /* Each view prints the following types itself, with its clock and display options. */
    PROPERTY_IS_TIME,
    PROPERTY_IS_TIMESTAMP,
    PROPERTY_IS_WHO,
    PROPERTY_IS_CALL, /* module:function(arguments) */
    PROPERTY_IS_LINE, /* the line of the text view */
};

/* A value of a property. The struct has two machine words, so that functions return it in registers. */
struct typed_value {
    uint8_t type; /* enum property_type */
    bool of_call; /* the event is a result, and `at` is a term of its call; see typed_of() */
    uint32_t len; /* length of text and name */
    union {
        const uint8_t *at;
        int64_t number;
        const char *text;            /* see typed_text() */
        const struct raw_byte *name; /* see typed_name() */
    };
};

_Static_assert(sizeof(struct typed_value) == 16, "returned in registers");

/* Returns the event whose terms the value `v` of `e` refers to. */
static inline const struct event *typed_of(struct typed_value v, const struct event *e)
{
    return v.of_call ? e->call->event : e;
}

static inline struct safe typed_text(struct typed_value v)
{
    return (struct safe){v.text, v.len};
}

static inline struct raw typed_name(struct typed_value v)
{
    return (struct raw){v.name, v.len};
}

/* Reads a property of an event. The kind of the event must be among property_row.events. */
typedef struct typed_value property_getter(const struct event *e);
extern property_getter *const property_getters[PROPERTIES];

/* Works like property_getters[], but for an event of any kind. */
static inline struct typed_value property_get(const struct event *e, enum property which)
{
    const struct property_row *row = &property_rows[which];

    if (likely(row->events >> e->kind & 1))
        return property_getters[which](e);
    return (struct typed_value){.type = row->uses & PROPERTY_NEEDS_RETURN && e->kind == ETW_CALL && e->expects_return
                                            ? PROPERTY_IS_LATER
                                            : PROPERTY_IS_ABSENT};
}

/* Returns the N-th argument (from 1). `args` is the property `args` of the event. */
struct typed_value property_argument(const struct event *e, struct typed_value args, unsigned n);

#endif
