"""Messages of a server that Python can't read: calls fail with an McpError, notifications are dropped."""

import asyncio
import json
import logging
from typing import Any

import pytest

from gudgeon import (
    Client,
    ClientGroup,
    ClientRequest,
    Image,
    LogMessage,
    McpError,
    ProtocolError,
    SyncClient,
    SyncClientGroup,
    ToolError,
)
from gudgeon.errors import ConnectFailed

DEEP = '{"a":' * 100_000 + "1" + "}" * 100_000
NESTED = "[" * 20_000 + "]" * 20_000
RESULTS = {
    "deep": f'{{"content":[],"structuredContent":{DEEP}}}',
    "huge number": '{"content":[],"structuredContent":{"a":1e999}}',
    "half a character": r'{"content":[{"type":"text","text":"\ud800"}]}',
}
UNREADABLE = {"huge number": '{"a":1e999}', "nested": NESTED, "half a character": r'"\ud800"'}
FINE = '{"content":[{"type":"text","text":"right"}]}'


class Scripted:
    """A server that answers calls with the same result, or `reply`, after other messages."""

    def __init__(
        self, result: str = FINE, *, reply: str | None = None, before: tuple[str, ...] = (), capabilities: str = "{}"
    ) -> None:
        self.reply = reply or f'"result":{result}'
        self.before = before
        self.capabilities = capabilities
        self.answers: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.refusals: list[dict[str, Any]] = []

    async def receive(self) -> bytes | None:
        return await self.answers.get()

    async def send(self, message: bytes, /) -> None:
        request = json.loads(message)
        if "method" not in request:
            self.refusals.append(request)
            return self.say(f'"id":{json.dumps(self.asked)},{self.reply}')
        if request["method"] == "initialize":
            capabilities = f'{{"tools":{{}},"resources":{{}},"logging":{{}},"experimental":{self.capabilities}}}'
            info = '{"name":"scripted","version":"1"}'
            result = f'{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{info}}}'
            reply = f'"result":{result}'
        elif "id" in request:
            self.asked = request["id"]
            for message_before in self.before:
                self.say(message_before)
            if any('"id"' in text for text in self.before):
                return None
            reply = self.reply
        else:
            return None
        return self.say(f'"id":{json.dumps(request["id"])},{reply}')

    def say(self, members: str) -> None:
        self.answers.put_nowait(f'{{"jsonrpc":"2.0",{members}}}'.encode())

    async def close(self) -> None:
        self.answers.put_nowait(None)


def blocking(server: Scripted, **options: Any) -> SyncClient:
    return SyncClient(server, revision="2025-11-25", **options)


def looping(server: Scripted, **options: Any) -> Client:
    return Client(server, revision="2025-11-25", **options)


@pytest.mark.parametrize("name", RESULTS)
async def test_a_result_is_a_protocol_error(name: str) -> None:
    async with looping(Scripted(RESULTS[name])) as client:
        for _ in range(2):
            with pytest.raises(ProtocolError, match="the server's result is invalid"):
                await client.call_tool("any")


@pytest.mark.parametrize("name", RESULTS)
async def test_a_result_is_an_error_in_middleware(name: str) -> None:
    async def passing(request: ClientRequest, next: Any) -> Any:
        return await next(request)

    async with Client(Scripted(RESULTS[name]), revision="2025-11-25", middleware=[passing]) as client:
        with pytest.raises(McpError, match="the server's result is invalid"):
            await client.call_tool("any")


async def test_a_result_of_any_method_is_a_protocol_error() -> None:
    async with looping(Scripted('{"a":1e999}')) as client:
        with pytest.raises(ProtocolError, match="acme/method: the server's result is invalid"):
            await client.request("acme/method")


@pytest.mark.parametrize("name", UNREADABLE)
async def test_an_error_lacks_its_data(name: str) -> None:
    reply = f'"error":{{"code":1,"message":"odd, \\"data\\":","data":{UNREADABLE[name]}}}'
    async with looping(Scripted(reply=reply)) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("any")
    assert (caught.value.code, caught.value.data) == (1, None)
    assert caught.value.message.endswith('odd, "data":')
    with blocking(Scripted(reply=reply)) as other, pytest.raises(ProtocolError, match="odd"):
        other.call_tool("any")


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_failed_result_is_a_tool_error_with_its_text(name: str) -> None:
    result = f'{{"content":[{{"type":"text","text":"odd"}}],"isError":true,"_meta":{{"n":{UNREADABLE[name]}}}}}'
    async with looping(Scripted(result)) as client:
        with pytest.raises(ToolError) as caught:
            await client.call_tool("any")
    assert caught.value.text == "odd"
    assert caught.value.result.is_error and caught.value.result.text == "odd"


async def test_a_failed_result_with_invalid_content_is_a_tool_error() -> None:
    async with looping(Scripted('{"content":[{"type":"text","text":{}}],"isError":true}')) as client:
        with pytest.raises(ToolError, match='tool "any" failed without a message') as caught:
            await client.call_tool("any")
    assert caught.value.result.is_error


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_server_whose_description_cannot_be_read_is_not_connected(name: str) -> None:
    capabilities = f'{{"x":{{"y":{UNREADABLE[name]}}}}}'
    client = looping(Scripted(capabilities=capabilities))
    with pytest.raises(ConnectFailed, match="the server's description is invalid"):
        await client.connect()
    assert "not connected" in repr(client)
    with pytest.raises(McpError, match="not connected"):
        await client.call_tool("any")
    await client.close()
    with pytest.raises(ConnectFailed, match="the server's description is invalid"):
        blocking(Scripted(capabilities=capabilities)).connect()


async def test_a_group_leaves_out_a_server_whose_description_cannot_be_read() -> None:
    odd = '{"x":"\\ud800"}'
    async with ClientGroup({"a": Scripted(), "b": Scripted(capabilities=odd)}, revision="2025-11-25") as group:
        assert list(group.clients) == ["a"]
        assert "the server's description is invalid" in str(group.errors["b"])
        assert (await group.call_tool("a_any")).text == "right"
        with pytest.raises(McpError):
            await group.call_tool("b_any")


@pytest.mark.io
def test_the_errors_of_a_group_lack_data_that_cannot_be_read() -> None:
    odd = Scripted()
    odd.send = refusing  # type: ignore[method-assign]
    odd.answers.put_nowait(f'{{"jsonrpc":"2.0","id":1,"error":{{"code":1,"message":"a","data":{NESTED}}}}}'.encode())
    with SyncClientGroup({"a": odd, "b": ["no-such-program"]}, revision="2025-11-25") as group:
        assert sorted(group.errors) == ["a", "b"]
        assert group.errors["a"].data is None  # type: ignore[attr-defined]


async def refusing(_: bytes, /) -> None:
    """Answers nothing: the error is in the queue already."""


def notice(data: str) -> str:
    return f'"method":"notifications/message","params":{{"level":"error","data":{data}}}'


@pytest.mark.parametrize("name", UNREADABLE)
def test_a_log_message_does_not_disturb_a_blocking_call(name: str, caplog: pytest.LogCaptureFixture) -> None:
    logged: list[LogMessage] = []
    server = Scripted(before=(notice(UNREADABLE[name]), notice(UNREADABLE[name]), notice('"fine"')))
    with blocking(server, on_log=logged.append) as client:
        assert client.call_tool("any").text == "right"
    assert [message.data for message in logged] == ["fine"]
    check_warning(caplog)


@pytest.mark.parametrize("name", UNREADABLE)
async def test_a_log_message_does_not_disturb_a_loop(name: str, caplog: pytest.LogCaptureFixture) -> None:
    logged: list[LogMessage] = []
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))
    server = Scripted(before=(notice(UNREADABLE[name]), notice(UNREADABLE[name]), notice('"fine"')))
    async with looping(server, on_log=logged.append) as client:
        assert (await client.call_tool("any")).text == "right"
    assert [message.data for message in logged] == ["fine"] and not failures
    check_warning(caplog)


def check_warning(caplog: pytest.LogCaptureFixture) -> None:
    """Checks that the first message that was dropped was logged, and the second was not."""
    warnings = [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and record.name == "gudgeon"
    ]
    assert len(warnings) == 1 and "a log message is dropped: the message is invalid" in warnings[0]


QUESTION = '"id":"q","method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":%s}'


@pytest.mark.parametrize("face", ["loop", "blocking"])
async def test_a_question_is_refused(face: str, caplog: pytest.LogCaptureFixture) -> None:
    schema = '{"type":"object","properties":{"a":{"type":"string","default":"\\ud800"}}}'
    server = Scripted(before=(QUESTION % schema,))
    if face == "loop":
        async with looping(server, on_elicit=lambda _: {}) as client:
            assert (await client.call_tool("any")).text == "right"
    else:
        await asyncio.to_thread(ask_blocking, server)
    assert "error" in server.refusals[0]
    assert not [record for record in caplog.records if record.exc_info], "it is not a failure of the callback"


def ask_blocking(server: Scripted) -> None:
    with blocking(server, on_elicit=lambda _: {}) as client:
        assert client.call_tool("any").text == "right"


def test_bytes_that_are_not_base64_fail_when_they_are_read() -> None:
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": "%%%"}}
    content = [
        {"type": "image", "data": "%%%", "mimeType": "image/png"},
        {"type": "text", "text": "right"},
        {"type": "image", "data": "AAE", "mimeType": "image/png"},
        {"type": "image", "data": "-_8=\n", "mimeType": "image/png"},
        blob,
    ]
    with blocking(Scripted(json.dumps({"content": content}))) as client:
        result = client.call_tool("any")
    image, text, *others, embedded = result.content
    assert result.text == text.text == "right"  # type: ignore[union-attr]
    assert isinstance(image, Image) and image.mime_type == "image/png"
    for _ in range(2):
        with pytest.raises(McpError, match=r"Image\.data.*base64"):
            _ = image.data
    with pytest.raises(McpError, match=r"EmbeddedResource\.blob.*base64"):
        _ = embedded.blob  # type: ignore[union-attr]
    assert [block.data for block in others] == [b"\x00\x01", b"\xfb\xff"]  # type: ignore[union-attr]
    assert "base64" in repr(image) and image == image and hash(image) == hash(image)
    # A program that passes the result on sends what it received.
    assert image.to_dict() == content[0] and embedded.to_dict() == blob


def test_contents_of_a_resource_that_are_not_base64_fail_when_they_are_read() -> None:
    parts = [{"uri": "a:b", "text": "right"}, {"uri": "a:c", "blob": "%%%"}]
    with blocking(Scripted(json.dumps({"contents": parts}))) as client:
        read = client.read_resource("a:b")
    assert read.text == "right"
    with pytest.raises(McpError, match=r"ResourceContents\.blob.*base64"):
        _ = read.contents[1].blob
    with pytest.raises(McpError, match="base64"):
        _ = read.blob


def test_a_text_that_only_looks_like_data_is_a_string() -> None:
    for text in ('{"a":1e999}', '{"a":"\\ud800"}', NESTED):
        with blocking(Scripted(json.dumps({"content": [{"type": "text", "text": text}]}))) as client:
            assert client.call_tool("any").data == text
            with pytest.raises(McpError, match="the result is not"):
                client.call_tool("any", returns=dict[str, int])
