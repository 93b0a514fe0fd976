/* SPDX-License-Identifier: Apache-2.0 */
/* Lists faults of VM versions that look like faults of a program: hangs, lost messages, corrupt terms, crashes. */
#ifndef ETRACE_VM_FAULTS_H
#define ETRACE_VM_FAULTS_H

#include "../ground/buf.h"

/*
 * Appends the faults of a VM, and the OTP that has none of them; returns false if none is known. `erts`: "15.2.7.1";
 * `arch`: erlang:system_info(system_architecture).
 */
bool vm_faults_print(struct buf *to, const char *erts, const char *arch);

#endif
