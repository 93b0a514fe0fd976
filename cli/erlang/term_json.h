/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints terms as JSON. The output is always one line of valid JSON in valid UTF-8, whatever the input.
 *
 * By default a term becomes a string in Erlang's (or Elixir's) syntax: that loses nothing, and people can read it.
 * json_term() prints the structure instead, for programs that need the parts:
 *
 *     true false null, and any other atom      true, false, null, "atom"
 *     integers of up to 53 bits, floats        numbers; larger integers are strings of digits
 *     binaries that are UTF-8                  strings; others {"b64":"…"}, bit strings also with "bits"
 *     lists                                    arrays; improper ones {"list":[…],"tail":…}
 *     lists of printable characters            strings
 *     tuples                                   {"tuple":[…]}
 *     maps whose keys are atoms or binaries    objects; others {"map":[[key,value],…]}
 *     pids, ports, references, functions       {"pid":"<0.84.0>"} {"port":…} {"ref":…} {"fun":…}
 *     parts that the node left out             {"cut":true} in its place, in objects as the key "…"; {"redacted":true}
 */
#ifndef ETRACE_TERM_JSON_H
#define ETRACE_TERM_JSON_H

#include "../ground/json.h"
#include "term_print.h"

const uint8_t *json_term(struct buf *to, const struct term_env *env, const uint8_t *at);

extern const struct printer printer_json; /* calls json_term() */

#endif
