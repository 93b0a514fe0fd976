/* SPDX-License-Identifier: Apache-2.0 */
/* Declares the names and types of the properties of events (properties.def). fold/property.h reads their values. */
#ifndef ETRACE_PROPERTIES_H
#define ETRACE_PROPERTIES_H

#include <stddef.h>
#include <stdint.h>

enum property {
#define PROPERTY(name, type, uses, events, json, doc) PROPERTY_##name,
#include "properties.def"
    PROPERTIES,
};

enum where_kind { /* the kind of a value, as far as the compiler knows it */
                  WT_ANY,
                  WT_BOOL,
                  WT_INT,
                  WT_DURATION, /* integer nanoseconds */
                  WT_SIZE,     /* integer bytes */
                  WT_TEXT,     /* characters, not an Erlang term */
                  WT_FUNCTION, /* {Module, Function, Arity}; patterns are matched against m:f/a */
};

enum {
    /* Recordings store the first two bits. */
    PROPERTY_NEEDS_RETURN = 1 << 0, /* the property of a call comes with the result, so results must be traced */
    PROPERTY_NEEDS_CALLER = 1 << 1, /* the caller must be collected */
    PROPERTY_NEEDS_SENDER = 1 << 2, /* the senders of received messages must be collected */
    PROPERTY_AROUND = 1 << 3,       /* the property depends on earlier events, so the node must send all of them */
    PROPERTY_NODE = 1 << 4,         /* the node can compare the property with a constant */
    PROPERTY_COLLECTED = 1 << 9,    /* JSON has the property only if the match specification collects it */
    PROPERTY_WHERE = 1 << 5,        /* a word of `where` */
    PROPERTY_FIELD = 1 << 6,        /* a field of --fields and --format */
    PROPERTY_PLAIN = 1 << 7,        /* a field of this property contains no space, quote or comma */
    PROPERTY_BY = 1 << 10,          /* a word of `by` but not of `where`; `by` also accepts every word of `where` */
    PROPERTY_HEAD = 1 << 8,         /* JSON writes the property before the other members */
};

struct property_row {
    const char *name;
    enum where_kind type;
    unsigned uses;         /* bits of the enum above */
    uint64_t events, json; /* bit K of `events`: events of kind K have the property; of `json`: also in JSON */
    const char *doc;
};

extern const struct property_row property_rows[PROPERTIES];

#endif
