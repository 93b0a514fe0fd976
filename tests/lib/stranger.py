#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""stranger.py FILE NAME [ADDRESS [PORT [EPMD]]] - pretends to be a node, to get an answer to its challenge.

It listens at ADDRESS:PORT (127.0.0.1, any port) and registers NAME with the epmd at $ERL_EPMD_PORT, or with EPMD serves
an epmd of its own at that port, which gives its port for each name. An empty NAME: neither. It writes its port to FILE,
and then a line for each connection: "heard" if the other end sent its name, and "answered" if it then sent a digest of
its cookie.
"""
import os
import socket
import struct
import sys
import threading

FILE, NAME = sys.argv[1], sys.argv[2].encode()
ADDRESS = sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"
PORT = int(sys.argv[4]) if len(sys.argv) > 4 else 0
EPMD = int(sys.argv[5]) if len(sys.argv) > 5 else 0


def listen(port):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((ADDRESS, port))
    s.listen(64)
    return s


def note(text):
    with open(FILE, "a") as f:
        f.write(text + "\n")


def receive(c, n):
    data = b""
    while len(data) < n:
        more = c.recv(n - len(data))
        if not more:
            raise ConnectionError
        data += more
    return data


def packet(c):
    return receive(c, struct.unpack(">H", receive(c, 2))[0])


def send(c, data):
    c.sendall(struct.pack(">H", len(data)) + data)


def be_node(c):
    said = None
    try:
        flags = packet(c)[1:9]
        said = "heard"
        send(c, b"snamed:" + struct.pack(">H", 4) + b"C@xy" + struct.pack(">I", 7))
        full = NAME + b"@127.0.0.1"
        send(c, b"N" + flags + struct.pack(">II", 1, 9) + struct.pack(">H", len(full)) + full)
        if packet(c)[:1] == b"r":
            said = "answered"
    except (ConnectionError, OSError):
        pass
    if said:
        note(said)
    c.close()


def be_epmd(c, port):
    try:
        request = packet(c)
        if request[:1] == b"z":
            name = request[1:]
            c.sendall(b"w\0" + struct.pack(">H", port) + b"M\0\0\6\0\5" + struct.pack(">H", len(name)) + name + b"\0\0")
        else:
            c.sendall(struct.pack(">I", EPMD) + b"name %s at port %d\n" % (NAME, port))
    except (ConnectionError, OSError):
        pass
    c.close()


def serve(listener, handle):
    while True:
        c, _ = listener.accept()
        threading.Thread(target=handle, args=(c,), daemon=True).start()


node = listen(PORT)
port = node.getsockname()[1]
if EPMD:
    threading.Thread(target=serve, args=(listen(EPMD), lambda c: be_epmd(c, port)), daemon=True).start()
elif NAME:
    registered = socket.create_connection(("127.0.0.1", int(os.environ.get("ERL_EPMD_PORT", "4369"))))
    send(registered, b"x" + struct.pack(">H", port) + b"M\0\0\6\0\5" + struct.pack(">H", len(NAME)) + NAME + b"\0\0")
    receive(registered, 4)
note(str(port))
serve(node, be_node)
