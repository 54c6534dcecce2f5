"""An endpoint for the bench, in a process of its own, which must not load Django: it shares the machine."""

import asyncio
from typing import Any

ANSWERS_AFTER = 0.2  # seconds
REPLY = (
    b'{"id":"c","object":"chat.completion","model":"bench","choices":[{"index":0,"finish_reason":"stop",'
    b'"message":{"role":"assistant","content":"Answer1"}}],"usage":{"prompt_tokens":1400,"completion_tokens":2}}'
)
RESPONSE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(REPLY), REPLY)


class _Endpoint(asyncio.Protocol):
    """Reads a request, waits, answers. As little work as possible: it shares the machine with what is measured."""

    def connection_made(self, transport: Any) -> None:
        self.transport, self.missing, self.head = transport, 0, b""

    def data_received(self, data: bytes) -> None:
        if not self.missing:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            start = self.head.lower().index(b"content-length:") + 15
            length = int(self.head[start : self.head.index(b"\r\n", start)])
            self.missing = length - (len(self.head) - end - 4)
            self.head = b""
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self.missing = 0
            asyncio.get_running_loop().call_later(ANSWERS_AFTER, self.transport.write, RESPONSE)


def serve(port: Any) -> None:
    async def main() -> None:
        server = await asyncio.get_running_loop().create_server(_Endpoint, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    try:
        import uvloop

        uvloop.run(main())
    except ImportError:
        asyncio.run(main())
