/* SPDX-License-Identifier: Apache-2.0 */
/* Marks symbols that only this library uses: code reaches them directly instead of through the global offset table. */
#ifndef ETRACE_HIDDEN_H
#define ETRACE_HIDDEN_H

#define HIDDEN __attribute__((visibility("hidden")))

#endif
