# SPDX-License-Identifier: Apache-2.0
"""slow_link.py PORT MS: forwards a port of our loopback, which it prints, to PORT there. Bytes take MS in each direction."""
import asyncio, sys

port, delay = int(sys.argv[1]), int(sys.argv[2]) / 1000


async def pipe(reader, writer):
    loop = asyncio.get_running_loop()
    while data := await reader.read(65536):
        loop.call_later(delay, writer.write, data)
    loop.call_later(delay, writer.close)


async def serve(reader, writer):
    there = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(pipe(reader, there[1]), pipe(there[0], writer), return_exceptions=True)


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


asyncio.run(main())
