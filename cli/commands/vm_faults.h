/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists known faults of VM versions that a user may mistake for faults of a program: hangs, lost messages, corrupt
 * terms, crashes.
 */
#ifndef ETRACE_VM_FAULTS_H
#define ETRACE_VM_FAULTS_H

#include "../ground/buf.h"

/*
 * Appends the known faults of a VM, and the OTP version that fixes all of them. Returns false if the VM has none.
 * `erts` is a version such as "15.2.7.1"; `arch` is erlang:system_info(system_architecture).
 */
bool vm_faults_print(struct buf *to, const char *erts, const char *arch);

#endif
