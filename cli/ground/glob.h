/* SPDX-License-Identifier: Apache-2.0 */
/* Compares names with patterns. */
#ifndef ETRACE_GLOB_H
#define ETRACE_GLOB_H

#include "buf.h"

/*
 * Returns true if the pattern matches the whole text. A * stands for any number of characters other than `barrier`, or
 * for any characters if `barrier` is 0. If `one` is true, a ? stands for one character.
 */
bool glob_matches(struct str pattern, struct str text, bool one, char barrier);

#endif
