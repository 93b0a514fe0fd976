/* SPDX-License-Identifier: Apache-2.0 */
/* Tests which versions of the VM have known faults. */
#include "commands/vm_faults.h"
#include "tap.h"

#define X86 "x86_64-pc-linux-gnu"
#define ARM "aarch64-unknown-linux-gnu"

static const char *faults(const char *erts, const char *arch)
{
    static struct buf b;

    b.len = 0;
    vm_faults_print(&b, erts, arch);
    buf_char(&b, '\0');
    return (const char *)b.data;
}

static bool names(const char *text, const char *word)
{
    return strstr(text, word);
}

/* Returns the text about the fault that OTP `fixed` does not have. */
static const char *hibernation(const char *fixed)
{
    static char text[300];

    snprintf(text, sizeof(text),
             "known faults of this VM: a message may not wake a hibernating process that has a large heap (GH-10651); "
             "OTP %s has none of these",
             fixed);
    return text;
}

int main(void)
{
    const char *want = hibernation("27.3.4.8");

    is_text(faults("15.2.7", X86), want, "a fault, its number, and the OTP that fixes it");
    is_text(faults("15.2.7.5", X86), want, "a version of four numbers");
    is_text(faults("15.2.7.6", X86), "", "the version with the fix");
    is_text(faults("15.2.7.10", X86), "", "10 comes after 6");
    want = hibernation("28.3.2");
    is_text(faults("16.2", X86), want, "another branch has its own fix");
    is_text(faults("16.2.1", X86), "", "with the fix");
    is_text(faults("17.1", X86), "", "a newer branch");
    is_text(faults("14.2.5", X86), "", "an older branch is unknown");
    is_text(faults("", X86), "", "no version");
    is_text(faults("nonsense", X86), "", "not a version");
    ok(names(faults("15.2.7", ARM), "PR-10664") && !names(faults("15.2.7", X86), "PR-10664"),
       "a fault of one architecture");
    ok(names(faults("15.0", X86), "OTP-19108") && names(faults("15.0", X86), "CVE-2025-32433") &&
           names(faults("15.0", X86), "; OTP 27.3.4.8 has"),
       "all faults, and the OTP that fixes the last of them");
    ok(!names(faults("15.0.1", X86), "OTP-19108") && names(faults("15.0.1", X86), "OTP-19154"),
       "each fault has its own fix");
    ok(names(faults("15.2.5", X86), "CVE-2025-32433") && !names(faults("15.2.6", X86), "CVE-2025-32433"),
       "the fault of ssh ends with OTP 27.3.3");
    return tap_end();
}
