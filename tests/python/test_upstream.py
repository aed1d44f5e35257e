"""Upstream servers of a server in Python: that what passes in Rust passes here too, and the middleware around it."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gudgeon import (
    Client,
    Command,
    Context,
    Principal,
    ResourceNotFound,
    Server,
    SyncClient,
    SyncContext,
    ToolError,
    ToolResult,
    Upstream,
)

pytestmark = pytest.mark.io

SHELF = """
import os

from gudgeon import Context, Progress, ResourceNotFound, Server, ToolError

app = Server("shelf")

@app.tool
def greet(name: str) -> str:
    return f"Hello, {name}!"

@app.tool
def fail() -> str:
    raise ToolError("it is broken")

@app.tool
async def book(name: str, ctx: Context) -> str:
    sure = await ctx.elicit(f"Book {name}?", bool)
    return f"{name}: {sure}"

@app.tool
async def count(ctx: Context) -> str:
    for step in range(1, 4):
        await ctx.progress(step, total=3)
    return "done"

@app.tool
async def wait(ctx: Context) -> str:
    import asyncio
    await asyncio.sleep(3600)

@app.tool
def grow() -> str:
    app.tool(lambda: "it is here", name="added")
    return "grown"

@app.tool
def touch() -> str:
    app.notify_updated("shelf://about")
    return "touched"

@app.tool
def pid() -> str:
    return str(os.getpid())

@app.tool
def end() -> str:
    os._exit(3)

@app.resource("shelf://about")
def about() -> str:
    return "two books"

@app.resource("shelf://books/{id}")
def read(id: str) -> str:
    return f"book {id}"

@app.prompt
def review(name: str) -> str:
    return f"Review {name}."

@app.complete("review", "name")
def names(typed: str) -> list[str]:
    return [f"{typed}une"]

app.run()
"""


@pytest.fixture
def shelf(tmp_path: Path) -> Command:
    program = tmp_path / "shelf.py"
    program.write_text(SHELF)
    return Command(sys.executable, str(program))


@pytest.fixture
def desk(shelf: Command) -> Server[Any]:
    app = Server("desk")
    app.tool(lambda: "open", name="open")
    app.mount("shelf", Upstream(shelf))
    return app


def test_everything_is_offered_under_the_prefix(desk: Server[Any]) -> None:
    with SyncClient(desk) as client:
        names = [tool.name.removeprefix("shelf_") for tool in client.list_tools()]
        assert names == ["open", "greet", "fail", "book", "count", "wait", "grow", "touch", "pid", "end"]
        assert client.call_tool("open").text == "open"
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"
        assert client.read_resource("shelf://about").text == "two books"
        assert client.read_resource("shelf://books/7").text == "book 7"
        assert client.get_prompt("shelf_review", {"name": "Dune"}).messages[0].content.text == "Review Dune."
        assert client.complete("shelf_review", "name", "D").values == ("Dune",)
        with pytest.raises(ToolError, match="it is broken"):
            client.call_tool("shelf_fail")
        steps: list[float] = []
        client.call_tool("shelf_count", on_progress=lambda step: steps.append(step.progress))
        assert steps == [1, 2, 3]


@pytest.mark.parametrize("below", ["2025-06-18", "2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("above", ["2025-06-18", "2025-11-25", "2026-07-28"])
def test_questions_pass_while_many_calls_run(shelf: Command, below: str, above: str) -> None:
    app = Server("desk")
    app.mount(Upstream(shelf, revision=below), "shelf")

    async def main() -> list[str]:
        async def elicit(asked: Any) -> bool:
            return "3" in asked.message

        async with Client(app, on_elicit=elicit, revision=above) as client:
            calls = [client.call_tool("shelf_book", {"name": f"room {number}"}) for number in range(6)]
            return [result.text for result in await asyncio.gather(*calls)]

    assert asyncio.run(main()) == [f"room {number}: {number == 3}" for number in range(6)]


@pytest.mark.parametrize("is_wrapped", [False, True])
def test_cancellation_passes(desk: Server[Any], is_wrapped: bool) -> None:
    if is_wrapped:

        @desk.middleware
        async def around(request: Any, next: Any) -> Any:
            return await next(request)

    async def main() -> None:
        async with Client(desk) as client:
            call = asyncio.ensure_future(client.call_tool("shelf_wait"))
            await client.call_tool("shelf_greet", {"name": "Ada"})
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            assert (await client.call_tool("shelf_greet", {"name": "Eve"})).text == "Hello, Eve!"

    asyncio.run(main())


@pytest.mark.parametrize("above", ["2025-11-25", "2026-07-28"])
def test_middleware_runs_around_calls_and_sees_its_own_names(desk: Server[Any], above: str) -> None:
    seen: list[tuple[str, Any]] = []

    @desk.middleware
    async def note(request: Any, next: Any) -> Any:
        params = request.params
        seen.append((request.method, params.get("name") or params.get("uri") or params.get("ref", {}).get("name")))
        if request.params.get("name") == "shelf_fail":
            raise ToolError("it is locked")
        return await next(request)

    house = Server("house")
    house.mount("desk", desk)
    outer: list[str] = []

    @house.middleware(on="tools/call")
    async def outside(request: Any, next: Any) -> Any:
        outer.append(request.params["name"])
        return await next(request)

    with SyncClient(house, revision=above, on_elicit=lambda asked: True) as client:
        assert client.call_tool("desk_shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"
        assert client.call_tool("desk_shelf_book", {"name": "7"}).text == "7: True"
        assert client.read_resource("shelf://books/7").text == "book 7"
        assert client.get_prompt("desk_shelf_review", {"name": "Dune"}).messages[0].content.text == "Review Dune."
        assert client.complete("desk_shelf_review", "name", "D").values == ("Dune",)
        with pytest.raises(ToolError, match="it is locked"):
            client.call_tool("desk_shelf_fail")
    assert outer == ["desk_shelf_greet", "desk_shelf_book", "desk_shelf_fail"]
    assert [request for request in seen if request[1]] == [
        ("tools/call", "shelf_greet"),
        ("tools/call", "shelf_book"),
        ("resources/read", "shelf://books/7"),
        ("prompts/get", "shelf_review"),
        ("completion/complete", "shelf_review"),
        ("tools/call", "shelf_fail"),
    ]


@pytest.mark.parametrize("above", ["2025-11-25", "2026-07-28"])
def test_handlers_read_resources_of_upstream_servers(desk: Server[Any], above: str) -> None:
    @desk.tool
    async def many(ctx: Context, names: list[str]) -> str:
        found = await asyncio.gather(*[ctx.read_resource(f"shelf://books/{name}") for name in names])
        return ", ".join(one.text for one in found)

    @desk.tool
    def one(ctx: SyncContext) -> str:
        try:
            ctx.read_resource("none://x")
        except ResourceNotFound:
            return ctx.read_resource("shelf://books/7").text or ""
        return "it was found"

    with SyncClient(desk, revision=above) as client:
        assert client.call_tool("many", {"names": ["1", "2", "3"]}).text == "book 1, book 2, book 3"
        assert client.call_tool("one").text == "book 7"


def test_middleware_may_return_what_a_handler_returns(shelf: Command) -> None:
    own = Server("own")
    own.mount("shelf", Upstream(shelf))

    @own.tool
    def shelf_own(number: int) -> Any:
        return 1

    answers: list[Any] = ["text", 7, {"a": 1}, [1, 2], b"{}", ToolResult("whole")]

    @own.middleware(on="tools/call")
    async def instead(request: Any, next: Any) -> Any:
        return answers[request.params["arguments"].get("number", 0)]

    with SyncClient(own) as client:
        for number in range(len(answers)):
            results = [
                client.call_tool(name, {"number": number}, raise_on_error=False) for name in ("shelf_own", "shelf_pid")
            ]
            assert results[0].content == results[1].content and results[0].is_error == results[1].is_error


def test_changes_of_lists_and_updates_of_resources_pass_also_to_the_second_that_is_served(desk: Server[Any]) -> None:
    async def main() -> None:
        first = await Client(desk).__aenter__()
        async with Client(desk) as client:
            await first.close()
            async with client.subscribe("shelf://about", tools=True) as changes:
                await client.call_tool("shelf_grow")
                assert (await anext(changes)).kind == "tools"
                assert (await client.call_tool("shelf_added")).text == "it is here"
                await client.call_tool("shelf_touch")
                assert (await anext(changes)).uri == "shelf://about"

    asyncio.run(main())


def test_a_failure_that_middleware_lets_pass_stays_what_it_is(shelf: Command) -> None:
    texts: list[str] = []
    for is_wrapped in (False, True):
        app = Server("desk")
        app.mount("shelf", Upstream(shelf))
        if is_wrapped:

            @app.middleware
            async def around(request: Any, next: Any) -> Any:
                return await next(request)

        with SyncClient(app) as client:
            result = client.call_tool("shelf_end", raise_on_error=False)
            assert result.is_error
            texts.append(result.text)
    assert texts[0].startswith('the upstream server "shelf" failed: ')
    assert texts[1] == texts[0]


def test_the_connections_are_closed_with_the_last_that_serves_and_opened_with_the_next(shelf: Command) -> None:
    app = Server("desk")
    app.mount("shelf", Upstream(shelf))
    pids: list[str] = []
    for name in ("Ada", "Eve"):
        with SyncClient(app) as client:
            assert client.call_tool("shelf_greet", {"name": name}).text == f"Hello, {name}!"
            pids.append(client.call_tool("shelf_pid").text)
        until = time.monotonic() + 60
        while Path(f"/proc/{pids[-1]}").exists():
            assert time.monotonic() < until, "it goes on"
            time.sleep(0.05)
    assert pids[0] != pids[1]


def test_the_connections_are_closed_although_the_listening_object_is_kept(desk: Server[Any]) -> None:
    async def main() -> tuple[Any, str]:
        async with desk.listen("http://127.0.0.1:0/mcp") as here, Client(here.url) as client:
            return here, (await client.call_tool("shelf_pid")).text

    _kept, pid = asyncio.run(main())
    until = time.monotonic() + 60
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.05)


@pytest.mark.parametrize("is_async", [False, True])
def test_a_token_comes_from_a_function(is_async: bool) -> None:
    shelf = Server("shelf", auth=lambda token, request: Principal(subject=token))

    @shelf.tool
    async def who(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    async def later() -> str:
        await asyncio.sleep(0)
        return "ada"

    async def main() -> str:
        async with shelf.listen("http://127.0.0.1:0/mcp") as here:
            app = Server("desk")
            app.mount("shelf", Upstream(here.url, auth=later if is_async else lambda: "ada"))
            async with Client(app) as client:
                return (await client.call_tool("shelf_who")).text

    assert asyncio.run(main()) == "ada"


def test_a_server_that_is_down_takes_nobody_else_down(shelf: Command) -> None:
    app = Server("desk")
    app.mount("gone", Upstream(["no-such-program-7"]))
    app.mount("shelf", Upstream(shelf))
    with SyncClient(app) as client:
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"


def test_several_servers_of_a_configuration(shelf: Command, tmp_path: Path) -> None:
    entry = {"command": shelf.argv[0], "args": list(shelf.argv[1:])}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": entry, "b": entry}}))
    for target in (path, {"a": entry, "b": entry}):
        app = Server("desk")
        app.mount("all", Upstream(target))
        with SyncClient(app) as client:
            assert client.call_tool("all_a_greet", {"name": "Ada"}).text == "Hello, Ada!"
            assert client.call_tool("all_b_greet", {"name": "Eve"}).text == "Hello, Eve!"


def test_a_file_is_read_once(shelf: Command, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": shelf.argv[0], "args": list(shelf.argv[1:])}}}))
    upstream = Upstream(path)
    path.unlink()
    assert "Upstream(" in repr(upstream)
    app = Server("desk")
    app.mount("all", upstream)
    with SyncClient(app) as client:
        assert client.call_tool("all_a_greet", {"name": "Ada"}).text == "Hello, Ada!"


def test_a_prefix_that_is_taken_is_refused_and_its_server_stays(desk: Server[Any]) -> None:
    with pytest.raises(ValueError, match="another"):
        desk.mount("shelf", Upstream(["no-such-program-7"]))
    with SyncClient(desk) as client:
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"


@pytest.fixture
def served(desk: Server[Any]) -> Iterator[str]:
    """The URL of the server, which listens."""
    ready, done = threading.Event(), threading.Event()
    url = ""

    async def main() -> None:
        nonlocal url
        async with desk.listen("http://127.0.0.1:0/mcp") as here:
            url = here.url
            ready.set()
            await asyncio.to_thread(done.wait)

    thread = threading.Thread(target=lambda: asyncio.run(main()))
    thread.start()
    assert ready.wait(30)
    yield url
    done.set()
    thread.join()


def test_over_http(served: str) -> None:
    with SyncClient(served, on_elicit=lambda asked: True) as client:
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"
        assert client.call_tool("shelf_book", {"name": "7"}).text == "7: True"


def test_over_stdio(shelf: Command, tmp_path: Path) -> None:
    program = tmp_path / "desk.py"
    program.write_text(
        "import sys\n"
        "from gudgeon import Server, Upstream\n"
        "app = Server('desk')\n"
        "app.mount('shelf', Upstream(sys.argv[1:]))\n"
        "app.run()\n"
    )
    with SyncClient([sys.executable, str(program), *shelf.argv], on_elicit=lambda asked: True) as client:
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"
        assert client.call_tool("shelf_book", {"name": "7"}).text == "7: True"


def test_a_server_that_does_not_end_by_itself_is_ended_with_the_process(tmp_path: Path) -> None:
    stays = (
        "import os, time\n"
        "from gudgeon import Server\n"
        "open({!r}, 'w').write(str(os.getpid()))\n"
        "Server('x').run()\n"
        "time.sleep(600)"
    )
    pid = tmp_path / "pid"
    command = [sys.executable, "-c", stays.format(str(pid))]
    program = (
        f"from gudgeon import Server, Upstream\napp = Server('desk')\napp.mount('x', Upstream({command!r}))\napp.run()"
    )
    with SyncClient([sys.executable, "-c", program]) as client:
        client.ping()
        process = int(pid.read_text())
        assert Path(f"/proc/{process}").exists()
    until = time.monotonic() + 60
    while Path(f"/proc/{process}").exists() and "zombie" not in Path(f"/proc/{process}/status").read_text():
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.05)


def test_a_server_with_upstream_servers_is_garbage_once_nobody_has_it(shelf: Command) -> None:
    app = Server("desk")
    app.mount("shelf", Upstream(shelf))

    @app.middleware
    async def around(request: Any, next: Any) -> Any:
        return await next(request)

    with SyncClient(app) as client:
        assert client.call_tool("shelf_greet", {"name": "Ada"}).text == "Hello, Ada!"
    gone = weakref.ref(app)
    del app, around, client
    until = time.monotonic() + 60
    # The threads that served it may still be ending.
    while gone() is not None:
        assert time.monotonic() < until
        time.sleep(0.05)
        gc.collect()


@pytest.mark.parametrize(
    ("make", "error", "says"),
    [
        (lambda: Upstream(Server("x")), TypeError, "mount it without Upstream"),
        (lambda: Upstream(["x"], on_log=print), TypeError, "leave on_log= out"),
        (lambda: Upstream(["x"], timeot=3), TypeError, "^Upstream: .*'timeout'"),
        (lambda: Upstream(["x"], client_info=3), TypeError, "^Upstream: client_info="),
        (lambda: Upstream(["x"], auth=3), TypeError, "^Upstream: auth= must be"),
        (lambda: Upstream([]), ValueError, "the program"),
        (lambda: Upstream("x"), ValueError, "URL"),
        (lambda: Server("x").mount(Upstream(["x"])), TypeError, "prefix"),
        (lambda: Server("x").mount("p", ["x"]), TypeError, r"mounted as Upstream\(target\)"),
        (lambda: Server("x").mount("p", "http://x/mcp"), TypeError, r"mounted as Upstream\(target\)"),
        (lambda: Server("x").mount("a b", Upstream(["x"])), ValueError, "prefix"),
    ],
)
def test_mistakes_are_named(make: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        make()
