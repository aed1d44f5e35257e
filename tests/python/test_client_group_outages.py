"""Groups whose servers are away for a while, or never start."""

import asyncio
import sys
import threading
import time
from contextlib import asynccontextmanager, contextmanager

import pytest
from ports import reserve_port

from eventually import eventually
from gudgeon import ClientGroup, Server, SyncClientGroup, SyncContext
from gudgeon.errors import AuthError, ConnectFailed, McpError


def shelf(name):
    app = Server(name)
    app.tool(lambda: name, name="who")
    app.resource(f"{name}://about", name="about")(lambda: name)
    return app


def url(port):
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def listening(app, at):
    """Serves on a thread of its own."""
    started, stop = threading.Event(), []

    async def serve():
        async with app.listen(at):
            leave = asyncio.Event()
            stop.append((asyncio.get_running_loop(), leave))
            started.set()
            await leave.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert started.wait(60)
    yield
    loop, leave = stop[0]
    loop.call_soon_threadsafe(leave.set)
    thread.join()


@pytest.mark.io
async def test_a_server_that_starts_later_joins_the_group():
    at, reached = url(reserve_port()), []
    options = {"retry": "never", "on_reconnect": lambda made: reached.append(made.server)}
    async with ClientGroup({"a": shelf("a"), "late": at}, **options) as group:
        assert list(group.clients) == ["a"] and isinstance(group.errors["late"], ConnectFailed)
        with pytest.raises(ConnectFailed) as caught:
            await group.call_tool("late_who")
        assert caught.value.target == at
        async with shelf("late").listen(at):
            async with asyncio.timeout(60):
                while not (len(group.clients) == 2 and reached):
                    await asyncio.sleep(0.01)
            assert group.clients["late"].server.name == "late" and reached == ["late"]
            assert not group.errors
            assert [tool.name for tool in await group.list_tools()] == ["a_who", "late_who"]
            assert (await group.read_resource("late://about")).text == "late"


@pytest.mark.io
def test_a_server_that_starts_later_joins_a_blocking_group():
    at = url(reserve_port())
    with SyncClientGroup({"late": at}, retry="never") as group:
        assert not group.clients and list(group.errors) == ["late"]
        with listening(shelf("late"), at):
            # Nothing asks for it, so that the attempt is one in the background.
            end = time.monotonic() + 60
            while not group.clients and time.monotonic() < end:
                time.sleep(0.01)
            assert group.clients["late"].call_tool("who").text == "late"
            assert not group.errors


@pytest.mark.io
def test_a_call_tries_to_reach_its_server_at_once():
    at = url(reserve_port())
    with SyncClientGroup({"late": at}) as group, listening(shelf("late"), at):
        assert group.call_tool("late_who").text == "late"


@pytest.mark.io
async def test_a_server_that_dies_is_left_out_of_lists_until_it_is_back():
    at = url(reserve_port())
    async with shelf("b").listen(at):
        group = await ClientGroup({"a": shelf("a"), "b": at}, retry="never").__aenter__()
        assert [tool.name for tool in await group.list_tools()] == ["a_who", "b_who"]
    assert [tool.name for tool in await group.list_tools()] == ["a_who"]
    assert [resource.uri for resource in await group.list_resources()] == ["a://about"]
    assert list(group.errors) == ["b"]
    assert (await group.call_tool("a_who")).text == "a"
    async with shelf("b").listen(at):
        assert [tool.name for tool in await group.list_tools()] == ["a_who", "b_who"]
        assert not group.errors
    await group.__aexit__()


ENDS = """
import sys
from gudgeon import Server
app = Server("s")
app.tool(lambda: sys.exit(3), name="die")
app.tool(lambda: "lives", name="who")
app.run()
"""


@pytest.mark.io
def test_a_command_that_ended_is_started_again(tmp_path):
    script = tmp_path / "server.py"
    script.write_text(ENDS.replace("sys.exit(3)", "__import__('os')._exit(3)"))
    with SyncClientGroup({"s": [sys.executable, str(script)]}) as group:
        with pytest.raises(McpError, match="status 3"):
            group.call_tool("s_die")
        assert group.call_tool("s_who").text == "lives"


def failing():
    @asynccontextmanager
    async def lifespan(_):
        raise RuntimeError("no database")
        yield

    return Server("failing", lifespan=lifespan)


async def test_a_server_in_memory_that_does_not_start_leaves_the_others(caplog):
    targets = {"a": shelf("a"), "failing": failing()}
    async with ClientGroup(targets) as group:
        assert list(group.clients) == ["a"]
        with pytest.raises(ConnectFailed, match="no database"):
            await group.call_tool("failing_x")
        assert (await group.call_tool("a_who")).text == "a"
    with SyncClientGroup(targets) as group:
        assert isinstance(group.errors["failing"], ConnectFailed)
        assert group.call_tool("a_who").text == "a"
    eventually(lambda: "could not be started" in caplog.text)


# Each of these servers waits for the others, so that they start only if they are started at the same time.
WAITS = """
import sys, time
from pathlib import Path
from gudgeon import Server
here, name = Path(sys.argv[1]), sys.argv[2]
(here / name).touch()
end = time.monotonic() + 60
while len(list(here.iterdir())) < 3:
    if time.monotonic() > end:
        sys.exit("the others did not start")
    time.sleep(0.01)
app = Server(name)
app.tool(lambda: name, name="who")
app.run()
"""


@pytest.mark.io
@pytest.mark.parametrize("kind", [ClientGroup, SyncClientGroup])
def test_servers_start_at_the_same_time(tmp_path, kind):
    script, here = tmp_path / "server.py", tmp_path / "started"
    script.write_text(WAITS)
    here.mkdir()
    targets = {name: [sys.executable, str(script), str(here), name] for name in "abc"}
    if kind is SyncClientGroup:
        with SyncClientGroup(targets) as group:
            assert list(group.clients) == ["a", "b", "c"], group.errors
        return

    async def main():
        async with ClientGroup(targets) as group:
            assert list(group.clients) == ["a", "b", "c"], group.errors

    asyncio.run(main())


def asking():
    app = Server("asking")

    @app.resource("ask://{topic}")
    def ask(topic: str, ctx: SyncContext) -> str:
        return f"{topic}: {ctx.elicit('Which?', str)}"

    return app


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_questions_are_answered_while_a_blocking_group_reads(era):
    options = {"on_elicit": lambda request: request.server, "revision": era, "timeout": 60}
    with SyncClientGroup({"a": shelf("a"), "b": asking()}, **options) as group:
        assert group.read_resource("ask://x").text == "x: b"
        assert group.clients["b"].read_resource("ask://y").text == "y: b"


@pytest.mark.io
def test_missing_credentials_are_not_tried_again():
    from http.server import BaseHTTPRequestHandler, HTTPServer
    from threading import Thread

    asked = []

    class Refuses(BaseHTTPRequestHandler):
        def do_POST(self):  # noqa: N802
            asked.append(self.path)
            self.send_response(401)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), Refuses)
    Thread(target=server.serve_forever, daemon=True).start()
    with SyncClientGroup({"a": url(server.server_address[1])}) as group:
        assert isinstance(group.errors["a"], AuthError)
        before = len(asked)
        with pytest.raises(AuthError):
            group.call_tool("a_x")
        time.sleep(1.5)
        assert len(asked) == before
    server.shutdown()


def test_a_group_that_is_not_entered_says_so():
    with pytest.raises(McpError, match="not connected"):
        SyncClientGroup({"a": shelf("a")}).list_tools()
    with pytest.raises(McpError, match="not connected"):
        SyncClientGroup({"a": shelf("a")}).call_tool("a_who")
