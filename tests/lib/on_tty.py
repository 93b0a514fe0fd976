# SPDX-License-Identifier: Apache-2.0
"""on_tty.py [WAIT SEND]... -- COMMAND... - runs a command on a terminal of its own, which is its controlling one.

Waits until the command has printed WAIT, then types SEND (with the escapes of Python), and so on. Prints what the
terminal showed, and then whether it still echoes. Exits with the status of the command, or 99 after 60 seconds."""
import os
import pty
import select
import sys
import termios
import time

split = sys.argv.index("--")
steps = list(zip(sys.argv[1:split:2], sys.argv[2:split:2]))
pid, fd = pty.fork()
if pid == 0:
    os.execvp(sys.argv[split + 1], sys.argv[split + 1:])
shown, seen, end = b"", 0, time.monotonic() + 60
while time.monotonic() < end:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            more = os.read(fd, 65536)
        except OSError:
            more = b""
        if not more:
            break
        shown += more
    if steps and steps[0][0].encode() in shown[seen:]:
        seen = len(shown)
        os.write(fd, steps.pop(0)[1].encode().decode("unicode_escape").encode())
else:
    os.kill(pid, 9)
echo = "on" if termios.tcgetattr(fd)[3] & termios.ECHO else "off"
sys.stdout.write(shown.decode(errors="replace").replace("\r", "") + f"\necho {echo}\n")
status = os.waitpid(pid, 0)[1]
sys.exit(99 if steps else os.waitstatus_to_exitcode(status) % 256)
