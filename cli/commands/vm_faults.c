/* SPDX-License-Identifier: Apache-2.0 */
#include "vm_faults.h"

#include <stdlib.h>
#include <string.h>

#include "../ground/macros.h"

#define VERSION_PARTS 5

struct vm_version {
    int part[VERSION_PARTS];
};

/*
 * The ERTS versions that have a fault: from `since` up to, not including, `fixed`. OTP version `otp` contains `fixed`.
 */
struct vm_range {
    const char *since, *fixed, *otp;
};

struct vm_fault {
    const char *what, *id, *arch; /* `arch`: prefix of the architectures that have the fault; NULL: all have it */
    struct vm_range in[2];
};

/*
 * Faults from the release notes of ERTS, the oldest fix first. etrace does not attach to nodes before OTP 27, so the
 * range of an older fault begins with OTP 27. Faults that only occur with tracing are in nif/tracer_gates.hrl.
 */
static const struct vm_fault vm_faults[] = {
    {"the JIT may change a tuple that is still in use", "OTP-19108", NULL, {{"15", "15.0.1", "27.0.1"}}},
    {"schedulers may hang while they free memory", "OTP-19154", NULL, {{"15", "15.1", "27.1"}}},
    {"a match of several tuples may fail although they are correct", "OTP-19268", NULL, {{"15", "15.1.2", "27.1.2"}}},
    {"gen_tcp:send/2 may block for ever while another process receives from the socket",
     "OTP-19267",
     NULL,
     {{"15", "15.1.2", "27.1.2"}}},
    {"building a binary may corrupt memory", "OTP-19462", NULL, {{"15", "15.2.2", "27.2.2"}}},
    {"anyone who reaches an ssh server of the node can run code there",
     "CVE-2025-32433",
     NULL,
     {{"15", "15.2.6", "27.3.3"}}},
    {"the VM may crash after a module is unloaded or a persistent term is erased",
     "OTP-19599",
     NULL,
     {{"15", "15.2.7", "27.3.4"}}},
    {"a message may not wake a hibernating process that has a large heap",
     "GH-10651",
     NULL,
     {{"15", "15.2.7.6", "27.3.4.8"}, {"16", "16.2.1", "28.3.2"}}},
    {"schedulers may hang in a lock",
     "PR-10664",
     "aarch64",
     {{"15", "15.2.7.6", "27.3.4.8"}, {"16", "16.2.1", "28.3.2"}}},
};

/* Reads the numbers of a version. Missing numbers are 0. */
static struct vm_version vm_version_read(const char *text)
{
    struct vm_version v = {0};
    char *end;

    for (int i = 0; i < VERSION_PARTS && *text >= '0' && *text <= '9'; i++) {
        v.part[i] = (int)strtol(text, &end, 10);
        text = *end == '.' ? end + 1 : end;
    }
    return v;
}

static bool vm_version_before(const struct vm_version *a, const char *text)
{
    const struct vm_version b = vm_version_read(text);

    for (int i = 0; i < VERSION_PARTS; i++)
        if (a->part[i] != b.part[i])
            return a->part[i] < b.part[i];
    return false;
}

static const struct vm_range *vm_fault_range(const struct vm_fault *f, const struct vm_version *v, const char *arch)
{
    if (f->arch && strncmp(arch, f->arch, strlen(f->arch)) != 0)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(f->in) && f->in[i].since; i++)
        if (!vm_version_before(v, f->in[i].since) && vm_version_before(v, f->in[i].fixed))
            return &f->in[i];
    return NULL;
}

bool vm_faults_print(struct buf *to, const char *erts, const char *arch)
{
    const struct vm_version v = vm_version_read(erts);
    const char *otp = NULL;

    for (size_t i = 0; i < ARRAY_LEN(vm_faults); i++) {
        const struct vm_range *range = vm_fault_range(&vm_faults[i], &v, arch);
        if (!range)
            continue;
        buf_printf(to, "%s%s (%s)", otp ? "; " : "known faults of this VM: ", vm_faults[i].what, vm_faults[i].id);
        otp = range->otp;
    }
    if (otp)
        buf_printf(to, "; OTP %s has none of these", otp);
    return otp;
}
