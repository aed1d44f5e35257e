"""Both faces against a server in memory, in every revision."""

import asyncio
import socket
from dataclasses import dataclass

import pytest

from eventually import eventually
from gudgeon import Client, McpError, ProtocolError, ResourceNotFound, Server, SyncClient, ToolError
from gudgeon.errors import CallTimeout, ConnectionLost, NotSupported
from gudgeon.testing import ERAS
from gudgeon.types import Completion, Page


@dataclass
class Book:
    id: int
    title: str


def make_app():
    from gudgeon.context import Context, SyncContext

    app = Server("shelf", version="1.0", instructions="Ask.", page_size=2)
    app.waiting = app.cancelled = 0

    @app.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @app.tool
    def find(id: int) -> Book:
        return Book(id, "Dune")

    @app.tool
    def say(text: str) -> str:
        return text

    @app.tool
    def fail() -> str:
        raise ToolError("no such shelf", shelf=3)

    @app.tool
    async def wait(seconds: float) -> str:
        app.waiting += 1
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            app.cancelled += 1
            raise
        return "waited"

    @app.tool
    async def steps(n: int, ctx: Context) -> str:
        for step in range(n):
            await asyncio.sleep(0.1)
            ctx.progress(step + 1, total=n, message=f"step {step}")
        return "done"

    @app.tool
    def log(ctx: SyncContext) -> str:
        ctx.warning("careful")
        return "logged"

    @app.tool
    def meta(ctx: SyncContext) -> str:
        return str(ctx.meta.get("acme/k"))

    @app.resource("shelf://about")
    def about() -> str:
        return "A shelf."

    @app.resource("shelf://books/{id}")
    def book(id: int) -> Book:
        if id == 404:
            raise ResourceNotFound(f"shelf://books/{id}")
        return Book(id, "Dune")

    @app.prompt
    def review(code: str) -> str:
        return f"Review {code}"

    @app.complete("review", "code")
    def codes(prefix: str) -> list[str]:
        return [prefix + "!"]

    @app.complete("shelf://books/{id}", "id")
    def ids(prefix: str) -> list[str]:
        return ["1"]

    @app.method("acme/echo")
    def echo(text: str) -> dict[str, str]:
        return {"echo": text}

    return app


@pytest.fixture
def app():
    return make_app()


@pytest.mark.parametrize("era", ERAS)
async def test_everything_in_every_revision(app, era):
    async with Client(app, revision=era) as client:
        assert client.revision == era
        assert client.server.name == "shelf" and client.server.version == "1.0"
        assert client.instructions == "Ask."
        assert "tools" in client.capabilities
        tools = await client.list_tools()
        assert [tool.name for tool in tools][:2] == ["add", "find"] and len(tools) == 8
        page = await client.list_tools_page()
        assert isinstance(page, Page) and len(page.items) == 2 and page.next_cursor
        again = await client.list_tools_page(page.next_cursor)
        assert again.items[0].name == "say"
        assert [resource.uri for resource in await client.list_resources()] == ["shelf://about"]
        assert [template.uri_template for template in await client.list_resource_templates()] == ["shelf://books/{id}"]
        assert [prompt.name for prompt in await client.list_prompts()] == ["review"]
        typed = await client.call_tool("add", {"a": 1, "b": 2}, returns=int)
        assert typed.data == 3
        assert (await client.call_tool("find", {"id": 1}, returns=Book)).data == Book(1, "Dune")
        assert (await client.call_tool("say", {"text": "3"}, returns=str)).data == "3"
        assert (await client.read_resource("shelf://about")).text == "A shelf."
        assert "Dune" in (await client.read_resource("shelf://books/{id}", {"id": 1})).text
        assert (await client.get_prompt("review", {"code": "x"})).messages[0].text == "Review x"
        assert await client.complete("review", "code", "a") == Completion(["a!"])
        assert (await client.complete("shelf://books/{id}", "id", "")).values == ("1",)
        assert (await client.request("acme/echo", {"text": "hi"}))["echo"] == "hi"
        assert 0 <= await client.ping() < 60
        await client.set_log_level("warning")
        await client.notify("acme/seen", {"a": 1})


@pytest.mark.parametrize("era", ERAS)
def test_the_blocking_face_is_the_same(app, era):
    with Client(app, revision=era) as client:
        assert isinstance(client, SyncClient)
        assert client.call_tool("add", {"a": 1, "b": 2}, returns=int).data == 3
        assert len(client.list_tools()) == 8
        assert client.read_resource("shelf://about").text == "A shelf."
        assert client.get_prompt("review", {"code": "x"}).messages[0].text == "Review x"
        assert client.complete("review", "code", "a").values == ("a!",)
        assert client.ping() >= 0
        assert client.call_tool("wait", {"seconds": 0}).text == "waited"


async def test_data_is_typed_back_or_plain(app):
    async with Client(app) as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
        assert (await client.call_tool("find", {"id": 1})).data == {"id": 1, "title": "Dune"}
        with pytest.raises(McpError, match="'add': the result is not a Book"):
            await client.call_tool("add", {"a": 1, "b": 2}, returns=Book)


async def test_pydantic_types_come_back(app):
    pydantic = pytest.importorskip("pydantic")

    class Found(pydantic.BaseModel):
        id: int
        title: str

    async with Client(app) as client:
        found = (await client.call_tool("find", {"id": 1}, returns=Found)).data
        assert found == Found(id=1, title="Dune")
        assert (await client.call_tool("find", {"id": 1}, returns=Found | None)).data == found


async def test_a_tool_that_fails_raises_unless_told_not_to(app):
    async with Client(app) as client:
        with pytest.raises(ToolError) as caught:
            await client.call_tool("fail")
        assert caught.value.text == "no such shelf"
        assert caught.value.result.is_error and caught.value.result.meta["shelf"] == 3
        result = await client.call_tool("fail", raise_on_error=False, returns=int)
        assert result.is_error and result.text == "no such shelf"


async def test_errors_are_typed_and_flat(app):
    async with Client(app) as client:
        with pytest.raises(ProtocolError) as caught:
            await client.call_tool("nope")
        assert caught.value.code == -32602 and "nope" in str(caught.value)
        with pytest.raises(ResourceNotFound) as missing:
            await client.read_resource("shelf://books/404")
        assert missing.value.uri == "shelf://books/404"
        with pytest.raises(ValueError, match="no variable .nope."):
            await client.read_resource("shelf://books/{id}", {"nope": 1})
        with pytest.raises(ProtocolError) as unknown:
            await client.request("acme/none")
        assert unknown.value.code == -32601


async def test_what_the_server_did_not_declare_is_not_sent():
    async with Client(Server("empty")) as client:
        with pytest.raises(NotSupported, match="prompts"):
            await client.list_prompts()


@pytest.mark.parametrize("era", ERAS)
async def test_progress_arrives_in_order_before_the_result(app, era):
    seen = []

    async def on_progress(step):
        seen.append((step.progress, step.total))

    async with Client(app, revision=era) as client:
        assert (await client.call_tool("steps", {"n": 3}, on_progress=on_progress)).text == "done"
    assert seen == [(1, 3), (2, 3), (3, 3)]


@pytest.mark.io
async def test_progress_extends_the_time_up_to_the_cap(app):
    # Longer than a busy machine takes for one step.
    async with Client(app, timeout=3) as client:
        assert (await client.call_tool("steps", {"n": 32}, on_progress=print)).text == "done"
    async with Client(app, timeout=3, max_timeout=3.2) as client:
        with pytest.raises(CallTimeout, match="max_timeout"):
            await client.call_tool("steps", {"n": 6_000})


async def test_a_timeout_is_a_timeout_error_and_cancels(app):
    async with Client(app) as client:
        with pytest.raises(TimeoutError) as caught:
            await client.call_tool("wait", {"seconds": 600}, timeout=1)
        assert isinstance(caught.value, CallTimeout) and caught.value.hint
        assert (await client.call_tool("say", {"text": "on"})).text == "on"
        await _until(lambda: app.cancelled == 1)


async def test_cancelling_the_task_cancels_the_request(app):
    async with Client(app) as client:
        call = asyncio.ensure_future(client.call_tool("wait", {"seconds": 30}))
        await _until(lambda: app.waiting == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await _until(lambda: app.cancelled == 1)


async def test_many_calls_at_once(app):
    async with Client(app) as client:
        results = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(1000)))
    assert [result.data for result in results] == [n + 1 for n in range(1000)]


async def test_logs_reach_the_callback(app):
    logs = []
    async with Client(app, on_log=logs.append) as client:
        await client.call_tool("log")
    assert [(message.level, message.data) for message in logs] == [("warning", "careful")]


async def test_a_calls_own_on_progress_comes_before_the_clients(app):
    seen = []
    async with Client(app, on_progress=seen.append) as client:
        await client.call_tool("steps", {"n": 2})
        await client.call_tool("steps", {"n": 1}, on_progress=lambda step: None)
    assert [step.progress for step in seen] == [1, 2]


async def test_meta_goes_along(app):
    async with Client(app) as client:
        assert (await client.call_tool("meta", meta={"acme/k": 5})).text == "5"


async def test_a_failing_callback_is_nobody_elses_failure(app, caplog):
    def on_progress(step):
        raise RuntimeError("mine")

    async with Client(app) as client:
        assert (await client.call_tool("steps", {"n": 1}, on_progress=on_progress)).text == "done"
    eventually(lambda: "on_progress failed" in caplog.text)


async def test_connect_and_close_from_any_task_and_twice(app):
    client = Client(app)
    await asyncio.create_task(client.connect())
    assert await client.connect() is client
    assert (await asyncio.create_task(client.call_tool("say", {"text": "a"}))).text == "a"
    await asyncio.create_task(client.close())
    await client.close()
    with pytest.raises(McpError, match="not connected"):
        await client.list_tools()
    await client.connect()
    assert (await client.call_tool("say", {"text": "b"})).text == "b"
    await client.close()


def test_two_loops_in_two_threads(app):
    import threading

    results = {}

    def run(name):
        async def main():
            async with Client(app) as client:
                calls = (client.call_tool("add", {"a": n, "b": 0}) for n in range(50))
                results[name] = sum([result.data for result in await asyncio.gather(*calls)])

        asyncio.run(main())

    threads = [threading.Thread(target=run, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {"a": 1225, "b": 1225}


def test_threads_share_a_blocking_client(app):
    from concurrent.futures import ThreadPoolExecutor

    with SyncClient(app) as client, ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: client.call_tool("add", {"a": n, "b": 1}).data, range(200))
        assert list(results) == [n + 1 for n in range(200)]


async def test_a_transport_of_ones_own(app):
    from gudgeon._testing.wire import Tap

    async with Client(Tap(app, None, None, None)) as client:
        assert (await client.call_tool("say", {"text": "a\nb"})).text == "a\nb"


def test_a_transport_of_ones_own_blocking(app):
    from gudgeon._testing.wire import Tap

    with SyncClient(Tap(app, None, None, None)) as client:
        assert client.call_tool("say", {"text": "a"}).text == "a"


async def test_validation_before_sending(app):
    async with Client(app, validate=True) as client:
        with pytest.raises(ValueError, match="add"):
            await client.call_tool("add", {"a": "x"})


async def _until(condition):
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("busy", ["receive", "close"])
async def test_a_transport_is_closed_whole_also_when_both_sides_end_at_once(busy: str) -> None:
    from gudgeon._client.memory import pump

    class Slow:
        def __init__(self) -> None:
            self.leaving, self.go_on, self.is_closed = asyncio.Event(), asyncio.Event(), False

        async def take_time(self, where: str) -> None:
            if where == busy:
                self.leaving.set()
                await self.go_on.wait()

        async def receive(self) -> bytes | None:
            try:
                await asyncio.Event().wait()
            finally:
                await self.take_time("receive")
            return None

        async def send(self, message: bytes, /) -> None: ...

        async def close(self) -> None:
            await self.take_time("close")
            self.is_closed = True

    ours, theirs = socket.socketpair()
    transport = Slow()
    pumping = asyncio.ensure_future(pump(transport, theirs))
    await asyncio.sleep(0)
    ours.close()
    await asyncio.wait_for(transport.leaving.wait(), 60)
    pumping.cancel()
    asyncio.get_running_loop().call_soon(transport.go_on.set)
    await asyncio.wait([pumping], timeout=60)
    assert transport.is_closed and theirs.fileno() == -1


def test_a_loop_that_was_left_takes_its_servers_along_and_the_client_is_told():
    client = Client(make_app())

    async def begin():
        await client.connect()
        return (await client.call_tool("add", {"a": 1, "b": 2})).data

    async def go_on():
        with pytest.raises(ConnectionLost):
            await client.call_tool("add", {"a": 1, "b": 2})
        await client.close()
        async with client:
            return (await client.call_tool("add", {"a": 1, "b": 2})).data

    assert asyncio.run(begin()) == asyncio.run(go_on()) == 3
