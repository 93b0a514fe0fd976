# SPDX-License-Identifier: Apache-2.0
"""forward.py PID PORT: forwards PORT of our loopback to the same port in the network of process PID, as kubectl does."""
import ctypes, os, select, socket, sys, threading

pid, port = sys.argv[1], int(sys.argv[2])
server = socket.create_server(("127.0.0.1", port))
there = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
if ctypes.CDLL(None, use_errno=True).setns(there, 0x40000000):
    sys.exit(f"setns: {os.strerror(ctypes.get_errno())}")
# Threads inherit the network of the thread that starts them; the listening socket stays in ours.
print(f"Forwarding from 127.0.0.1:{port} -> {port}", flush=True)


def serve(client):
    with client, socket.create_connection(("127.0.0.1", port)) as node:
        while True:
            for ready in select.select([client, node], [], [])[0]:
                data = ready.recv(65536)
                if not data:
                    return
                (node if ready is client else client).sendall(data)


while True:
    threading.Thread(target=serve, args=server.accept()[:1], daemon=True).start()
