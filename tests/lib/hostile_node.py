#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hostile_node.py ETRACE CASE... - runs commands against nodes and epmds that follow the protocol up to
some phase and are hostile from then on.

CASE is PHASE:KIND:COMMAND. The commands run at the same time, each against a listener of its own. The script kills a
command after LIMIT seconds. It prints a line for each: PHASE KIND COMMAND, the status (124: killed), the peak memory in
KiB, and the output of the command on one line. fault.c (FAULT_SO) measures the memory, in files in COUNTS.
The node is called hostile@127.0.0.1, and its cookie is that of $HOME.

PHASE is where the hostility begins: epmd (the port is that of an epmd), handshake, attach (after the handshake), arm
(after the companion's hello; no request gets an answer), stream (after the answer to a request that arms), leave (after
the stop). KIND is what the node does then; see kinds(). COMMAND is one of COMMANDS, or COMMAND-for: the same with --for.
"""
import hashlib
import os
import resource
import socket
import struct
import subprocess
import sys
import threading
import time

PHASES = ["epmd", "handshake", "attach", "arm", "stream", "leave"]
NAME = b"hostile@127.0.0.1"
OTP = b"27"


# ---- the external term format

def atom(name):
    return b"w" + bytes([len(name)]) + name


def integer(n):
    return b"b" + struct.pack(">i", n)


def binary(data):
    return b"m" + struct.pack(">I", len(data)) + data


def tuple_(*items):
    return b"h" + bytes([len(items)]) + b"".join(items)


def map_(pairs):
    return b"t" + struct.pack(">I", len(pairs)) + b"".join(atom(k) + v for k, v in pairs)


NIL = b"j"


def size(data, at):
    """Returns the end of the term at `at`. Knows only the terms that etrace sends."""
    tag = data[at:at + 1]
    if tag in b"wd":
        return at + 2 + data[at + 1] if tag == b"w" else at + 3 + struct.unpack_from(">H", data, at + 1)[0]
    if tag == b"X":
        return size(data, at + 1) + 12
    fixed = {b"a": 2, b"b": 5, b"j": 1, b"F": 9}
    if tag in fixed:
        return at + fixed[tag]
    if tag == b"m":
        return at + 5 + struct.unpack_from(">I", data, at + 1)[0]
    if tag == b"n":
        return at + 3 + data[at + 1]
    if tag == b"h":
        end = at + 2
        for _ in range(data[at + 1]):
            end = size(data, end)
        return end
    raise ValueError(tag)


def small(data, at):
    if data[at:at + 1] == b"a":
        return data[at + 1]
    if data[at:at + 1] == b"b":
        return struct.unpack_from(">I", data, at + 1)[0]
    return int.from_bytes(data[at + 3:at + 3 + data[at + 1]], "little")


# ---- one connection

class Node:
    def __init__(self, connection, phase, kind):
        self.c, self.phase, self.kind = connection, phase, kind
        self.client = self.pid = None
        self.seq = 0
        self.lock = threading.Lock()
        self.harming = False

    def receive(self, n):
        data = b""
        while len(data) < n:
            more = self.c.recv(n - len(data))
            if not more:
                raise ConnectionError
            data += more
        return data

    def send(self, data):
        with self.lock:
            self.c.sendall(data)

    def packet(self):
        return self.receive(struct.unpack(">H", self.receive(2))[0])

    def reply(self, data):
        self.send(struct.pack(">H", len(data)) + data)

    def handshake(self):
        cookie = open(os.path.join(os.environ["HOME"], ".erlang.cookie"), "rb").read().strip()
        flags = self.packet()[1:9]
        given = b"CLIENT@hostile"
        self.reply(b"snamed:" + struct.pack(">H", len(given)) + given + struct.pack(">I", 7))
        self.reply(b"N" + flags + struct.pack(">II", 1, 9) + struct.pack(">H", len(NAME)) + NAME)
        answer = self.packet()
        theirs = struct.unpack(">I", answer[1:5])[0]
        self.reply(b"a" + hashlib.md5(cookie + str(theirs).encode()).digest())

    def message(self, term):
        frame = b"p\x83" + tuple_(b"a\x02", atom(b""), self.client) + b"\x83" + term
        return struct.pack(">I", len(frame)) + frame

    def say(self, data):
        self.send(self.message(binary(data)))

    def answer(self, number, term):
        self.say(b"R" + struct.pack("<I", number) + b"\x83" + tuple_(atom(b"ok"), term))

    def hello(self):
        owner = b"X" + atom(NAME) + struct.pack(">III", 99, 0, 9)
        self.answer(0, map_([(b"pid", owner), (b"otp", binary(OTP)), (b"otp_release", binary(OTP)), (b"load_nif", atom(b"true")),
                             (b"encoding", atom(b"unicode")), (b"creation", integer(9))]))

    def batch(self, flags=0):
        self.seq += 1
        head = struct.pack("<IIQQQQQII", 0x42575445, 56, self.seq, 0, 0, 0, 0, flags, 0)
        return self.message(binary(b"B" + head))

    def serve(self):
        if self.phase == "handshake":
            return self.harm()
        self.handshake()
        while True:
            frame = self.receive(struct.unpack(">I", self.receive(4))[0])
            if frame:
                self.heard(frame)

    def heard(self, frame):
        end = size(frame, 2)
        control = frame[2:end]
        if control[:4] == b"h\x04a\x06":
            self.client = control[4:size(control, 4)]
            if self.phase == "attach":
                self.start()
            elif len(frame) > 10000:
                self.hello()
        elif control[:4] == b"h\x03a\x02":
            self.owner(frame[end + 1:])

    def owner(self, message):
        at = 2
        verb = message[at:size(message, at)]
        if verb == atom(b"stop") and self.phase == "leave":
            self.start()
        if verb != atom(b"request") or self.harming and self.phase == "arm":
            return
        at = size(message, at)
        number = small(message, at)
        if self.phase == "arm":
            self.start()
        elif atom(b"atoms") in message:
            self.answer(number, NIL)                              # the node knows all atoms of the expressions
        else:
            self.answer(number, map_([(b"probes", NIL), (b"processes", integer(1)), (b"ports", integer(0)), (b"warning", NIL)]))
            if self.phase == "stream":
                self.start()

    def start(self):
        if not self.harming:
            self.harming = True
            threading.Thread(target=quietly, args=(self.harm,), daemon=True).start()

    def harm(self):
        kinds(self)[self.kind]()

    def forever(self, data, pause=0.0):
        while True:
            self.send(data() if callable(data) else data)
            time.sleep(pause)


def kinds(n):
    return {
        "silent": lambda: time.sleep(3600),
        "bytes": lambda: n.forever(b"\x00" * 65536),              # ticks, or bytes outside the protocol
        "ticks": lambda: n.forever(b"\x00" * 4, 0.02),            # few ticks, without end
        "messages": lambda: n.forever(n.message(binary(b"four")) * 100),
        "terms": lambda: n.forever(n.message(NIL) * 20, 0.005),   # etrace accepts a hundred; other threads delay each turn
        "slowly": lambda: n.forever(b"\x00", 0.1) if n.phase in ("epmd", "handshake") else (n.send(struct.pack(">I", 1000)), n.forever(b"p", 0.1)),
        "batches": lambda: n.forever(n.batch),
        "ends": lambda: n.forever(end_of(n)),                     # the message of the owner's end, repeatedly
        "steps": lambda: [n.say(b"W\x83" + atom(w)) or time.sleep(1) for w in (b"code_server", b"tracer") * 1000],
    }


def end_of(n):
    owner = b"X" + atom(NAME) + struct.pack(">III", 99, 0, 9)
    frame = b"p\x83" + tuple_(b"a\x03", owner, n.client or owner, atom(b"killed"))
    return struct.pack(">I", len(frame)) + frame


def quietly(work):
    try:
        work()
    except (OSError, ConnectionError, ValueError, struct.error):
        pass


def one(connection, phase, kind):
    n = Node(connection, phase, kind)
    quietly(n.harm if phase == "epmd" else n.serve)
    connection.close()


def listen(phase, kind):
    s = socket.create_server(("127.0.0.1", 0), backlog=64)

    def accept():
        while True:
            threading.Thread(target=one, args=(s.accept()[0], phase, kind), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    return s.getsockname()[1]


def names(port):
    """Starts an epmd that knows the node at that port."""
    s = socket.create_server(("127.0.0.1", 0))

    def tell():
        while True:
            with s.accept()[0] as c:
                asked = c.recv(1000)
                c.sendall(b"\x00\x00\x00\x00name hostile at port %d\n" % port if asked[2:3] == b"n" else struct.pack(">BBH", 119, 0, port) + bytes(20))
    threading.Thread(target=tell, daemon=True).start()
    return s.getsockname()[1]


# ---- the commands

LIMIT = 40
COMMANDS = {
    "trace": ["trace", "work:one/1"],
    "ls": ["ls", "work"],
    "info": ["info", "work"],
    "sessions": ["sessions"],
    "nodes": ["nodes"],
    "doctor": ["doctor"],
    "top": ["top", "--for", "1s", "work:_"],
    "repl": ["repl"],
    "check": ["check"],
    "stacks": ["stacks"],
    "ps": ["ps"],
    "why": ["why", "w"],
    "requests": ["requests", "--for", "1s"],
    "died": ["died", "--for", "1s"],
}


def ended(etrace, case):
    """Returns the status of the command, its memory in kB, and its output."""
    phase, kind, command = case.split(":")
    port = listen(phase, kind)
    epmd = port if phase == "epmd" else names(port)
    words = list(COMMANDS[command.removesuffix("-for")])
    if command.endswith("-for") and "--for" not in words:
        words[1:1] = ["--for", "1s"]
    if command == "nodes":
        words += ["127.0.0.1"]
    else:
        words[1:1] = ["-n", NAME.decode()] + ([] if phase == "epmd" else ["--port", str(port)])
    count = "%s/%s-%s-%s" % (os.environ["COUNTS"], phase, kind, command)
    child = subprocess.Popen([etrace] + words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             env={**os.environ, "ERL_EPMD_PORT": str(epmd), "LD_PRELOAD": os.environ["FAULT_SO"], "FAULT": "count", "FAULT_COUNT": count})
    try:
        child.stdin.write(b"work:one/1\n:hist\n" if command == "repl" else b"")
        child.stdin.close()
    except BrokenPipeError:
        pass  # the client has already exited
    killer = threading.Timer(LIMIT, child.kill)
    killer.start()
    text = child.stdout.read(100000).decode(errors="replace")
    status = child.wait()
    killer.cancel()
    most = open(count).read().split()[2] if os.path.exists(count) else "unknown"
    return 124 if status < 0 else status, most, text.replace("\n", " / ")


def run(etrace, case):
    try:
        line = ended(etrace, case)
    except Exception as error:
        line = 125, "unknown", "FAIL: %r" % error
    with printing:
        print(*case.split(":"), *line, flush=True)


printing = threading.Lock()
# Two hundred concurrent cases have several descriptors each.
hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
threads = [threading.Thread(target=run, args=(sys.argv[1], case)) for case in sys.argv[2:]]
for t in threads:
    t.start()
for t in threads:
    t.join()
os._exit(0)
