"""What a server answers that Python can't read is the server's fault, and told so."""

import asyncio
import json

import pytest

from gudgeon import Client, ProtocolError

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
RESULTS = {
    "deep": f'{{"content":[],"structuredContent":{DEEP}}}',
    "huge number": '{"content":[],"structuredContent":{"a":1e999}}',
    "half a character": r'{"content":[{"type":"text","text":"\ud800"}]}',
}


class Scripted:
    """A server that answers every call with the same result."""

    def __init__(self, result: str) -> None:
        self.result = result
        self.answers: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> bytes | None:
        return await self.answers.get()

    async def send(self, message: bytes, /) -> None:
        request = json.loads(message)
        if request["method"] == "initialize":
            result = json.dumps(
                {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "scripted", "version": "1"},
                }
            )
        elif request["method"] == "tools/call":
            result = self.result
        else:
            return
        self.answers.put_nowait(f'{{"jsonrpc":"2.0","id":{json.dumps(request["id"])},"result":{result}}}'.encode())

    async def close(self) -> None:
        self.answers.put_nowait(None)


@pytest.mark.parametrize("name", RESULTS)
async def test_what_cannot_be_read_is_a_protocol_error(name: str) -> None:
    async with Client(Scripted(RESULTS[name]), revision="2025-11-25") as client:
        for _ in range(2):
            with pytest.raises(ProtocolError, match="the server's result is invalid"):
                await client.call_tool("any")
