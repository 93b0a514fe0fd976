#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Runs clients of an XMPP server on the loopback: plain sockets, SASL PLAIN, no TLS. It listens on a port of its own,
# writes the port to FILE, and answers each request line with one line:
#     in NAME [PASSWORD]      logs a user in with the resource r; answers ok, or the server's refusal
#     out NAME                logs the user out
#     send FROM TO N          FROM sends N messages to TO, TO receives them in order; answers the number received
#     xmpp_load.py SERVER_PORT FILE
import base64
import re
import socket
import socketserver
import sys

SERVER, FILE = int(sys.argv[1]), sys.argv[2]
HEAD = "<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams' to='localhost' version='1.0'>"


class Refused(Exception):
    pass


class User:
    def __init__(self, name, password):
        self.got = ""
        self.socket = socket.create_connection(("127.0.0.1", SERVER), timeout=30)
        self.say(HEAD)
        self.until("</stream:features>")
        plain = base64.b64encode(f"\0{name}\0{password}".encode()).decode()
        self.say(f"<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>")
        if "<failure" in self.until("<success[^>]*>|</failure>"):
            self.socket.close()
            raise Refused
        self.say(HEAD)
        self.until("</stream:features>")
        self.say("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>")
        self.until("</iq>")
        self.say("<presence/>")
        self.until("<presence[^>]*>")

    def say(self, text):
        self.socket.sendall(text.encode())

    # Returns the received text up to the end of the pattern.
    def until(self, pattern):
        while not (found := re.search(pattern, self.got)):
            piece = self.socket.recv(65536)
            if not piece:
                raise EOFError(self.got)
            self.got += piece.decode()
        text, self.got = self.got[: found.end()], self.got[found.end() :]
        return text

    def leave(self):
        self.say("</stream:stream>")
        while self.socket.recv(65536):
            pass
        self.socket.close()


users = {}


def answer(command, name, *rest):
    if command == "in":
        try:
            users[name] = User(name, *(rest or ["secret"]))
        except Refused:
            return "refused"
        return "ok"
    if command == "out":
        users.pop(name).leave()
        return "ok"
    to, count = rest[0], int(rest[1])
    came = 0
    for n in range(1, count + 1):
        users[name].say(f"<message type='chat' to='{to}@localhost/r' id='{n}'><body>{name} {n}</body></message>")
    for n in range(1, count + 1):
        came += f"<body>{name} {n}</body>" in users[to].until("</message>")
    return str(came)


class Control(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().decode().split()
        self.wfile.write((answer(*words) + "\n").encode())


with socketserver.TCPServer(("127.0.0.1", 0), Control) as server:
    with open(FILE, "w", encoding="ascii") as file:
        print(server.server_address[1], file=file)
    server.serve_forever()
