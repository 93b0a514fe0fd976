/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Explains topics, such as `etrace help expr`, and words of the expression language, such as `etrace help dur`.
 * Commands are not explained here.
 */
#ifndef ETRACE_TOPICS_H
#define ETRACE_TOPICS_H

#include "../ground/buf.h"

/*
 * Appends the page of the topic, or all meanings of the word. `dash` precedes names of options in the text: "--" or, in
 * the interactive mode, ":". Returns false if there is no topic and no word of this name.
 */
bool topic_print(struct buf *b, const char *name, const char *dash);

/* Calls `each` for every topic. */
void topics_each(void (*each)(void *data, const char *name), void *data);

/* Calls `each` for every topic and every word of the expression language, once for each meaning of a word. */
void topic_names(void (*each)(void *data, const char *name), void *data);

#endif
