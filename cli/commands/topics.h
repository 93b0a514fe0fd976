/* SPDX-License-Identifier: Apache-2.0 */
/* Explains what is no command: parts of the tool (etrace help expr), and words of the language (etrace help dur). */
#ifndef ETRACE_TOPICS_H
#define ETRACE_TOPICS_H

#include "../ground/buf.h"

/*
 * Appends the page of the topic, or every meaning of the word. `dash` begins the name of an option here: "--" or ":".
 * Returns false if there is neither a topic nor a word of this name.
 */
bool topic_print(struct buf *b, const char *name, const char *dash);

/* Calls `each` for every topic. */
void topics_each(void (*each)(void *data, const char *name), void *data);

/* Calls `each` for every topic and every word. A word with several meanings comes several times. */
void topic_names(void (*each)(void *data, const char *name), void *data);

#endif
