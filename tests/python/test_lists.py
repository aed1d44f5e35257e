"""Lists: their components for each caller, kept results of clients and the server, and warnings at registration."""

import threading
import time
import warnings
from typing import Any

import pytest

from eventually import eventually
from gudgeon import Server, SyncClient, SyncContext, ToolError, ToolResult
from serverproc import ServerProcess


def test_a_result_is_cached_until_it_is_notified_as_changed() -> None:
    app, calls = Server("t"), []

    @app.resource("shelf://books/{id}", cache=60)
    def book(id: int) -> str:
        calls.append(id)
        return f"{id}: {len(calls)}"

    @app.resource("shelf://about", cache=60)
    async def about() -> str:
        calls.append(0)
        return f"about: {len(calls)}"

    @app.resource("shelf://now")
    def now() -> str:
        calls.append(-1)
        return "now"

    with SyncClient(app) as client:
        read = lambda uri: client.read_resource(uri).text  # noqa: E731
        assert [read("shelf://books/7"), read("shelf://books/7")] == ["7: 1", "7: 1"]
        assert read("shelf://books/8") == "8: 2"
        assert [read("shelf://about"), read("shelf://about")] == ["about: 3", "about: 3"]
        app.notify_updated("shelf://books/7")
        assert read("shelf://books/7") == "7: 4"
        assert read("shelf://books/8") == "8: 2", "another resource is as it was"
        assert [read("shelf://now"), read("shelf://now")] == ["now", "now"]
        assert calls == [7, 8, 0, 7, -1, -1]
        app.resources.update("shelf://about", title="About")
        assert read("shelf://about") == "about: 7", "other components end all that is kept"


def test_reads_at_the_same_time_share_one_call() -> None:
    app, calls, goes_on = Server("t"), [], threading.Event()

    @app.resource("shelf://slow", cache=60, thread=True)
    def slow() -> str:
        calls.append(1)
        assert goes_on.wait(60)
        return "slow"

    with SyncClient(app) as client:
        texts: list[str] = []
        read = lambda: texts.append(client.read_resource("shelf://slow").text)  # noqa: E731
        readers = [threading.Thread(target=read), threading.Thread(target=read)]
        for reader in readers:
            reader.start()
        deadline = time.monotonic() + 60
        while not calls and time.monotonic() < deadline:
            time.sleep(0.001)
        goes_on.set()
        for reader in readers:
            reader.join()
        assert (texts, len(calls)) == (["slow", "slow"], 1)


def test_what_a_user_answered_is_not_kept() -> None:
    app = Server("t")

    answers = iter(["ada", "bob"])
    asked = []

    def answer(*_: Any) -> str:
        asked.append(next(answers))
        return asked[-1]

    @app.resource("shelf://mine", cache=60)
    def own(ctx: SyncContext) -> str:
        return ctx.elicit("Who?", str)

    with SyncClient(app, on_elicit=answer) as client:
        assert client.read_resource("shelf://mine").text == "ada"
        assert client.read_resource("shelf://mine").text == "bob"
    assert asked == ["ada", "bob"]


def test_who_sees_an_offer_is_asked_each_time() -> None:
    app, shown = Server("t"), [False]
    asked: list[Any] = []

    def visible(who: Any) -> bool:
        asked.append(who)
        return shown[0]

    @app.tool(visible=visible)
    def secret() -> str:
        return "secret"

    @app.tool
    def open_() -> str:
        return "open"

    @app.prompt(visible=visible)
    def draft() -> str:
        return "draft"

    @app.resource("a://secret", visible=visible)
    def hidden() -> str:
        return "hidden"

    with SyncClient(app) as client:
        for seen in (False, True, False):
            shown[0] = seen
            assert [tool.name for tool in client.list_tools()] == (["secret", "open_"] if seen else ["open_"])
            assert len(client.list_prompts()) == len(client.list_resources()) == int(seen)
            if seen:
                assert client.call_tool("secret").text == "secret"
                assert client.get_prompt("draft").messages[0].text == "draft"
                assert client.read_resource("a://secret").text == "hidden"
            else:
                with pytest.raises(Exception, match="Unknown tool: secret"):
                    client.call_tool("secret")
                with pytest.raises(Exception, match="Unknown prompt: draft"):
                    client.get_prompt("draft")
                with pytest.raises(Exception, match="Resource not found: a://secret"):
                    client.read_resource("a://secret")
    assert set(asked) == {None}, "nobody is known over a wire in memory"


def test_a_mounted_tool_is_seen_by_who_sees_it() -> None:
    app, shelf, shown = Server("house"), Server("shelf"), [False]
    app.mount("shelf", shelf)
    shelf.tool(lambda: "ok", name="tidy", visible=lambda who: shown[0])
    with SyncClient(app) as client:
        assert client.list_tools() == []
        shown[0] = True
        assert [tool.name for tool in client.list_tools()] == ["shelf_tidy"]
        assert client.call_tool("shelf_tidy").text == "ok"


@pytest.mark.io
def test_a_predicate_that_fails_hides_and_says_so() -> None:
    source = """
        app.tool(lambda: "open", name="open")
        app.tool(lambda: "ok", name="broken", visible=lambda who: who.scopes)
        async def later(who): return True
        app.tool(lambda: "ok", name="late", visible=later)
    """
    with ServerProcess(source) as server:
        tools = server.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in tools] == ["open"]
        server.close_input()
        server.wait()
        assert "visible= of the tool 'broken' failed: it stays hidden" in server.stderr
        assert "AttributeError" in server.stderr
        assert "visible= of the tool 'late' failed" in server.stderr


def test_visible_must_be_a_function() -> None:
    app: Any = Server("t")
    with pytest.raises(TypeError, match="visible= must be a function of the principal"):
        app.tool(lambda: "ok", name="a", visible=True)


@pytest.mark.io
def test_cache_times_are_sent_in_2026_07_28_only() -> None:
    source = """
        @app.tool(visible=lambda who: True)
        def add(a: int) -> int:
            return a

        @app.resource("a://kept", ttl=1.5, cache_scope="private")
        def kept() -> str:
            return "kept"

        @app.resource("a://plain")
        def plain() -> str:
            return "plain"
    """
    with ServerProcess(source, "modern", ", list_ttl=30") as server:
        hint = lambda reply: (reply["result"]["ttlMs"], reply["result"]["cacheScope"])  # noqa: E731
        assert hint(server.ask("server/discover")) == (30_000, "public")
        assert hint(server.ask("resources/list")) == (30_000, "public")
        assert hint(server.ask("tools/list")) == (30_000, "private"), "not everybody sees the same"
        assert hint(server.ask("resources/read", {"uri": "a://kept"})) == (1_500, "private")
        assert hint(server.ask("resources/read", {"uri": "a://plain"})) == (0, "public")
    with ServerProcess(source, "legacy", ", list_ttl=30") as server:
        for reply in (server.ask("resources/list"), server.ask("resources/read", {"uri": "a://kept"})):
            assert not {"ttlMs", "cacheScope"} & set(reply["result"])


def test_a_cursor_comes_from_its_own_server_and_list() -> None:
    app = Server("t", page_size=2)
    for name in "abcde":
        app.tool(lambda: "ok", name=name)
    app.prompt(lambda: "ok", name="p")
    with SyncClient(app) as client:
        assert [tool.name for tool in client.list_tools()] == list("abcde")
        page = client.list_tools_page()
        assert [tool.name for tool in client.list_tools_page(page.next_cursor).items] == ["c", "d"]
        for cursor in ("dG9vbDow", "garbage"):
            with pytest.raises(Exception, match="invalid cursor"):
                client.list_tools_page(cursor)
        with pytest.raises(Exception, match="invalid cursor"):
            client.list_prompts_page(page.next_cursor)


@pytest.mark.io
def test_hiding_what_is_hidden_tells_nobody() -> None:
    source = """
        @app.tool(tags=["x"])
        def secret() -> None: ...

        @app.tool
        def hide() -> None:
            for _ in range(3):
                app.tools.disable("secret")
                app.tools.disable(tags=["x"])

        @app.tool
        def show() -> None:
            for _ in range(3):
                app.tools.enable("secret")
    """
    with ServerProcess(source) as server:
        server.tool("hide")
        server.tool("show")
        server.ask("ping")
        told = [frame for frame in server.seen if frame.get("method") == "notifications/tools/list_changed"]
        assert len(told) == 2


@pytest.mark.io
def test_a_completion_goes_with_its_prompt() -> None:
    app = Server("t")
    for turn in range(2):

        @app.prompt
        def review(title: str) -> str:
            return title

        @app.complete("review", "title")
        def titles(prefix: str) -> list[str]:
            return [f"{prefix}{turn}"]

        with SyncClient(app) as client:
            assert client.complete("review", "title", "x").values == (f"x{turn}",)
        app.prompts.remove("review")
    with ServerProcess(
        """
        @app.prompt
        def review(title: str) -> str: return title
        @app.complete("review", "title")
        def titles(prefix: str) -> list[str]: return []
        app.prompts.remove("review")
        """,
        "modern",
    ) as server:
        assert "completions" not in server.ask("server/discover")["result"]["capabilities"]


def test_keys_of_meta_that_the_specification_has_no_room_for_are_told(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("t")
    with pytest.warns(UserWarning, match='^tool "noted": _meta: the key "not ok" is not a name') as caught:

        @app.tool(meta={"com.example/ok": 1, "not ok": 1})
        def noted() -> ToolResult:
            return ToolResult("x", meta={"dev.mcp/x": 1})

    assert len(caught) == 1 and caught[0].filename == __file__
    with SyncClient(app) as client:
        for _ in range(2):
            assert client.call_tool("noted").meta["dev.mcp/x"] == 1
    eventually(
        lambda: (
            caplog.text.count('tool "noted" answered with _meta: the key "dev.mcp/x" has a prefix that is reserved')
            == 1
        )
    )


def test_what_hosts_refuse_is_a_warning_where_it_is_registered() -> None:
    app = Server("t")
    with pytest.warns(UserWarning, match='tool "admin.list": its name has a "."') as caught:
        app.tool(lambda: "ok", name="admin.list")
    assert caught[0].filename == __file__
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    with pytest.warns(UserWarning, match='an array without an "items" schema at a'):

        @app.tool(input=schema)
        def listed(a: list[Any]) -> str:
            return "ok"

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @app.tool
        def usual(a: "int | None" = None, b: "list[str] | None" = None, c: "dict[str, int] | None" = None) -> str:
            raise ToolError("never")

        @app.tool
        def arrays(a: "list[Any]", b: "tuple[int, str]", c: "list[set[Any]] | None" = None) -> str:
            raise ToolError("never")


_BOOK = {
    "type": "object",
    "properties": {"book": {"$ref": "#/$defs/book"}, "note": {"anyOf": [{"type": "string"}, {"type": "null"}]}},
    "$defs": {"book": {"type": "object", "properties": {"title": {"type": "string"}}}},
}


def test_handwritten_schemas_are_written_out_unless_the_profile_is_full() -> None:
    def order(book: dict[str, Any], note: "str | None" = None) -> Any:
        return {"book": book, "note": note}

    written = {
        "type": "object",
        "properties": {
            "book": {"type": "object", "properties": {"title": {"type": "string"}}},
            "note": {"type": ["string", "null"]},
        },
    }
    for profile, expected in (("portable", written), ("full", _BOOK)):
        options: Any = {"schema_profile": profile}
        app = Server("t", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("error" if profile == "portable" else "ignore")
            app.tool(order, input=_BOOK, output=_BOOK)
        assert (app.tools["order"].input_schema, app.tools["order"].output_schema) == (expected, expected)
        with SyncClient(app) as client:
            result = client.call_tool("order", {"book": {"title": "Dune"}, "note": None})
            assert result.data == {"book": {"title": "Dune"}, "note": None}


def test_a_handwritten_schema_that_needs_itself_is_refused_unless_the_profile_is_full() -> None:
    schema = {"type": "object", "properties": {"up": {"$ref": "#"}}}
    for which in ("input", "output"):
        options: Any = {which: schema}
        with pytest.raises(TypeError, match=rf'^{which}= of .*the schema is cyclic \(# → #\).*schema_profile="full"'):
            Server("t").tool(lambda: {}, name="a", **options)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Server("t", schema_profile="full").tool(lambda: {}, name="a", **options)
