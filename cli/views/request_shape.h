/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shapes of requests: a request without its data. A shape keeps an atom, tuples with their tags, and the names of
 * structs, and has `_` in the place of every other term: count, {reserve,_,_}, {get,{user,_}}. Shapes are numbered, and
 * kept as text in both languages.
 *
 * Tags within a request can be data, too. So after SHAPE_VARIANTS shapes with the same outermost tag, all of them
 * become one, which keeps only that tag: {get,_}. Bounded: further shapes share the entry 0.
 */
#ifndef ETRACE_REQUEST_SHAPE_H
#define ETRACE_REQUEST_SHAPE_H

#include "../ground/table.h"
#include "sink.h"

#define SHAPES_MAX 4096
#define SHAPE_VARIANTS 16

struct request_shape {
    char *erl, *elixir;
    uint32_t coarse;   /* the shape that keeps only the tag; may be the shape itself */
    uint32_t variants; /* shapes with this one as `coarse` */
};

struct request_shapes {
    struct request_shape *items;
    size_t n, cap;
    struct table by_text; /* by `erl` */
    struct buf text;
};

void request_shapes_release(struct request_shapes *s);
/* Returns the number of the term's shape. The term may be cut or redacted. */
uint32_t request_shape_of(struct request_shapes *s, const struct term_env *env, const uint8_t *at);
/* Returns the number of a text that is no term, such as the name of a process. */
uint32_t request_shape_text(struct request_shapes *s, struct str safe);
/* The shape itself, or its coarse one once that has too many variants. */
uint32_t request_shape_now(const struct request_shapes *s, uint32_t shape);
const char *request_shape_name(const struct request_shapes *s, uint32_t shape, bool elixir);

#endif
