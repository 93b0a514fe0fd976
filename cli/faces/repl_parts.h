/* SPDX-License-Identifier: Apache-2.0 */
/* Bundles the parts of the interactive mode that :commands use. repl.c creates and connects the parts. */
#ifndef ETRACE_REPL_PARTS_H
#define ETRACE_REPL_PARTS_H

#include "repl_recorder.h"
#include "repl_views.h"

struct repl_parts {
    struct repl_base *base;
    struct repl_nodes *nodes;
    struct repl_probes *probes;
    struct repl_recorder *recorder;
    struct repl_files *files;
    struct repl_views *views;
};

#endif
