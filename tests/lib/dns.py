#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# dns.py ADDRESS READY [truncate] NAME=ADDRESS... - a name server on port 53 of ADDRESS that knows the given names.
#
# It creates the file READY when it listens. With `truncate`, answers over UDP are empty and truncated, so the client
# has to ask over TCP.
import ipaddress
import socket
import struct
import sys
import threading

address, ready, *known = sys.argv[1:]
truncate = "truncate" in known
names = [entry.split("=") for entry in known if "=" in entry]


def question(packet):
    """The name and the type of the question, and where it ends."""
    at, labels = 12, []
    while packet[at]:
        labels.append(packet[at + 1:at + 1 + packet[at]].decode())
        at += 1 + packet[at]
    return ".".join(labels).lower(), struct.unpack(">H", packet[at + 1:at + 3])[0], at + 5


def answer(packet, truncated):
    name, kind, end = question(packet)
    found = [ipaddress.ip_address(a) for n, a in names if n == name]
    records = [a.packed for a in found if {1: 4, 28: 6}.get(kind) == a.version and not truncated]
    flags = 0x8580 | (0x0200 if truncated else 0) | (0 if found else 3)
    head = packet[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0)
    return head + packet[12:end] + b"".join(struct.pack(">HHHIH", 0xC00C, kind, 1, 60, len(r)) + r for r in records)


def exactly(connection, count):
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            return None
        data += more
    return data


def serve_tcp(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            while length := exactly(connection, 2):
                reply = answer(exactly(connection, struct.unpack(">H", length)[0]), False)
                connection.sendall(struct.pack(">H", len(reply)) + reply)


listener = socket.create_server((address, 53))
threading.Thread(target=serve_tcp, args=(listener,), daemon=True).start()
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind((address, 53))
open(ready, "w").close()
while True:
    packet, client = udp.recvfrom(4096)
    udp.sendto(answer(packet, truncate), client)
