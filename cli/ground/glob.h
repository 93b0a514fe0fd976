/* SPDX-License-Identifier: Apache-2.0 */
/* Compares names with patterns. */
#ifndef ETRACE_GLOB_H
#define ETRACE_GLOB_H

#include "buf.h"

/*
 * Returns true if the pattern matches the whole text: * stands for any characters except `barrier` (0: for any), and,
 * if `one` is true, ? for one character.
 */
bool glob_matches(struct str pattern, struct str text, bool one, char barrier);

#endif
