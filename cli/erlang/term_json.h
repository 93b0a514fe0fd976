/*
 * Terms and text inside of JSON. Whatever comes in, what leaves is valid JSON in valid UTF-8, in one line.
 *
 * A term is a string in Erlang's (or Elixir's) syntax by default: it says everything and a person can read it. json_term()
 * gives structure instead, for programs that want to reach into it:
 *
 *     true false null, and any other atom      true, false, null, "atom"
 *     integers of up to 53 bits, floats        numbers; larger integers are strings of digits
 *     binaries that are UTF-8                  strings; others {"b64":"…"}, bit strings also with "bits"
 *     lists                                    arrays; improper ones {"list":[…],"tail":…}
 *     lists of printable characters            strings
 *     tuples                                   {"tuple":[…]}
 *     maps whose keys are atoms or binaries    objects; others {"map":[[key,value],…]}
 *     pids, ports, references, functions       {"pid":"<0.84.0>"} {"port":…} {"ref":…} {"fun":…}
 *     what was left out                        {"cut":true} in its place, in objects as the key "…"; {"redacted":true}
 */
#ifndef ETRACE_TERM_JSON_H
#define ETRACE_TERM_JSON_H

#include "term_print.h"

const uint8_t *json_term(struct buf *to, const struct term_env *env, const uint8_t *at);

/* Escapes what was written since `from`, which is text that is safe to print: only quotes and backslashes can occur. */
void json_escape_tail(struct buf *to, size_t from);

/* A string, with its quotes, of any bytes. */
void json_string(struct buf *to, struct raw text);

extern const struct printer printer_json; /* json_term() */

#endif
