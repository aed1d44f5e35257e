"""Registration, changes while a server runs, middleware and mounts; and errors at registration."""

from typing import Any

import pytest

from gudgeon import Client, Context, Server, SyncClient, SyncContext
from serverproc import ServerProcess


def misuse(register: Any) -> str:
    with pytest.raises((TypeError, ValueError)) as caught:
        register(Server("t"))
    return str(caught.value)


def twice(app: Any) -> None:
    @app.tool
    def add(a: int) -> int:
        return a

    app.tool(add)


def wrong_context(app: Any) -> None:
    @app.tool
    def add(a: int, ctx: Context) -> int:
        return a


def wrong_sync_context(app: Any) -> None:
    @app.tool
    async def add(a: int, ctx: SyncContext) -> int:
        return a


def bare_resource(app: Any) -> None:
    @app.resource
    def about() -> str:
        return ""


def missing_variable(app: Any) -> None:
    @app.resource("a://b/{id}")
    def about(other: str) -> str:
        return ""


def no_schema(app: Any) -> None:
    class Opaque:
        pass

    @app.tool
    def opaque(it: Opaque) -> str:
        return ""


@pytest.mark.parametrize(
    ("register", "said"),
    [
        (twice, ["already registered", "another name", "test_server_registry.py"]),
        (wrong_context, ["SyncContext", "'ctx'", "test_server_registry.py"]),
        (wrong_sync_context, ["takes Context", "'ctx'"]),
        (bare_resource, ["@app.resource('"]),
        (missing_variable, ["'other'", "a://b/{id}"]),
        (no_schema, ["'it'", "Opaque"]),
        (lambda app: app.tool(lambda: "x"), ["lambda", "name="]),
        (lambda app: app.tool("bad name")(lambda: None), ["bad name", "letters"]),
        (lambda app: app.tool(titel="x"), ["titel", "title"]),
        (lambda app: app.tool(timeout=-1), ["timeout", "seconds"]),
        (lambda app: app.resource("no uri")(lambda: ""), ["lambda"]),
        (lambda app: app.complete("nothing", "x")(lambda prefix: []), ["annotation"]),
        (lambda app: app.middleware(3), ["middleware"]),
        (lambda app: app.tool(expose_errors=LookupError), ["expose_errors", "(LookupError,)"]),
        (lambda app: app.tool(thread="yes"), ["thread", "True or False"]),
        (lambda app: app.tool(icons="x"), ["icons", "list"]),
        (lambda app: Server("x", expose_errors=("ValueError",)), ["expose_errors", "classes"]),  # type: ignore[arg-type]
        (lambda app: Server("x", lifespan=5), ["lifespan", "context manager"]),  # type: ignore[arg-type, call-overload]
        (lambda app: app.mount("x", app), ["itself"]),
        (lambda app: app.tools.remove("nothing"), ["nothing", "it has none"]),
        (lambda app: app.tools.enable(tags="x"), ["list"]),
        (lambda app: Server("x", revisions=["2020-01-01"]), ["2020-01-01", "2026-07-28"]),
        (lambda app: app.run("stdio", tls=("a", "b")), ["tls"]),
    ],
)
def test_misuse_fails_at_once_with_place_and_fix(register: Any, said: list[str]) -> None:
    text = misuse(register)
    assert all(part in text for part in said), text


def test_names_of_other_sdks_are_answered_with_ours() -> None:
    import gudgeon

    with pytest.raises(AttributeError, match="Server"):
        gudgeon.FastMCP  # type: ignore[attr-defined]
    with pytest.raises(AttributeError, match="app.tool"):
        Server("t").add_tool  # type: ignore[attr-defined]
    for client in (Client(Server("t")), SyncClient(Server("t"))):
        with pytest.raises(AttributeError, match=r"client\.set_log_level\(level\)"):
            client.set_logging_level  # type: ignore[union-attr]
        assert not hasattr(client, "nonsense")


def test_registries_show_and_change_what_is_offered() -> None:
    app = Server("t")

    @app.tool(tags=["a"])
    def add(a: int) -> int:
        """Adds."""
        return a

    assert add(1) == 1
    assert "add" in app.tools and len(app.tools) == 1 and app.tools["add"].description == "Adds."
    app.tools.update("add", title="Sum", description=None)
    assert (app.tools["add"].title, app.tools["add"].description) == ("Sum", None)
    app.tools.remove("add")
    assert list(app.tools) == []
    app.tool(add)


@pytest.mark.io
def test_changes_while_it_is_served_are_notified_and_take_effect() -> None:
    source = """
        def late() -> str:
            return "late"

        async def late_async() -> str:
            await asyncio.sleep(0)
            return "late"

        @app.tool
        def change() -> None:
            app.tool(late)
            app.tool(late_async)
            app.tools.disable("change")
    """
    with ServerProcess(source) as server:
        server.tool("change")
        server.until("notifications/tools/list_changed") if not any(
            frame.get("method") == "notifications/tools/list_changed" for frame in server.seen
        ) else None
        names = [tool["name"] for tool in server.ask("tools/list")["result"]["tools"]]
        assert names == ["late", "late_async"]
        assert server.text("late") == "late"
        assert server.text("late_async") == "late"
        assert server.reply(server.start_tool("change"))["error"]["code"] == -32602


@pytest.mark.io
def test_middleware_runs_around_handlers_of_both_kinds() -> None:
    source = """
        @app.tool
        def add(a: int, b: int) -> int:
            return a + b

        @app.tool
        async def shout(text: str) -> str:
            return text.upper()

        @app.middleware(on="tools/call")
        async def around(request, next):
            if request.params["arguments"].get("a") == 13:
                raise ToolError("unlucky")
            result = await next(request)
            return result if request.params["name"] == "add" else result.text + "!"

        @app.resource("t://{name}")
        def read(name: str) -> str:
            return name
    """
    with ServerProcess(source) as server:
        assert server.tool("add", a=1, b=2)["structuredContent"] == {"result": 3}
        assert server.text("shout", text="hi") == "HI!"
        assert server.text("add", a=13, b=2) == "unlucky"
        assert server.ask("resources/read", {"uri": "t://x"})["result"]["contents"][0]["text"] == "x"


@pytest.mark.io
def test_a_mounted_server_offers_its_things_under_a_prefix() -> None:
    source = """
        other = Server("other")
        app.mount("o", other)

        @other.tool
        def add(a: int, b: int) -> int:
            return a + b

        @other.resource("o://about")
        async def about(ctx: Context) -> str:
            return ctx.server.name

        @app.tool
        async def reads(ctx: Context) -> str:
            return (await ctx.read_resource("o://about")).text
    """
    with ServerProcess(source) as server:
        assert server.tool("o_add", a=1, b=2)["structuredContent"] == {"result": 3}
        assert server.text("reads") == "other"
