"""Clients of the two older descriptions of the protocol, both faces, against servers that understand them."""

import pytest

from gudgeon import Client, Context, McpError, ResourceNotFound, Server, SyncClient, ToolError
from gudgeon.errors import NotSupported

DIALECTS = ["0.7", "bare"]


def make_app(**options):
    app = Server("shelf", **options)

    @app.tool
    def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    @app.tool
    async def spoken(ctx: Context) -> str:
        return ctx.revision

    @app.tool
    def fail() -> str:
        raise ToolError("Try again.")

    @app.resource("shelf://items/{id}{?lang}")
    def items(id: int, lang: str = "en") -> dict[str, object]:
        return {"id": id, "lang": lang}

    @app.prompt
    def greet(name: str, style: str = "warm") -> str:
        return f"Greet {name}, {style}."

    return app


@pytest.mark.parametrize("dialect", DIALECTS)
def test_everything_is_as_in_a_revision(dialect):
    with SyncClient(make_app(dialects=DIALECTS, page_size=1), revision=dialect) as client:
        assert client.revision == dialect
        assert [tool.name for tool in client.list_tools()] == ["add", "spoken", "fail"]
        assert client.list_tools()[0].input_schema["required"] == ["a", "b"]
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert client.call_tool("spoken").text == dialect
        with pytest.raises(ToolError, match="Try again"):
            client.call_tool("fail")
        with pytest.raises(McpError, match="nothing"):
            client.call_tool("nothing")
        assert [template.uri_template for template in client.list_resource_templates()] == ["shelf://items/{id}{?lang}"]
        read = client.read_resource("shelf://items/{id}{?lang}", {"id": 7, "lang": "de"})
        assert '"de"' in read.contents[0].text
        assert '"en"' in client.read_resource("shelf://items/7").contents[0].text
        with pytest.raises(ResourceNotFound):
            client.read_resource("shelf://nothing")
        arguments = client.list_prompts()[0].arguments
        assert [(argument.name, argument.required) for argument in arguments] == [("name", True), ("style", False)]
        assert client.get_prompt("greet", {"name": "Ada"}).messages[0].content.text == "Greet Ada, warm."
        client.ping()


async def test_structured_values_come_as_data():
    async with Client(make_app(dialects=["0.7"]), revision="0.7") as client:
        assert (await client.call_tool("add", {"a": 1, "b": 2})).data == 3
        with pytest.raises(NotSupported):
            await client.complete("greet", "name", "A")


def at(url: str, wire: str) -> str:
    """Returns the address of this transport of a server that listens at `url`."""
    return {"http": url, "websocket": url.replace("http", "ws", 1), "sse": url.replace("/mcp", "/sse")}[wire]


@pytest.mark.io
@pytest.mark.parametrize("wire", ["http", "sse", "websocket"])
@pytest.mark.parametrize("dialect", DIALECTS)
async def test_both_are_spoken_over_every_wire(dialect, wire):
    async with make_app(dialects=DIALECTS).listen("http://127.0.0.1:0/mcp", legacy_sse=True) as here:
        async with Client(at(here.url, wire), revision=dialect) as client:
            assert client.revision == dialect
            assert (client.session_id is not None) == (dialect == "bare" and wire == "http")
            assert [tool.name for tool in await client.list_tools()] == ["add", "spoken", "fail"]
            assert (await client.call_tool("add", {"a": 1, "b": 2})).text == "3"
            assert (await client.call_tool("spoken")).text == dialect
            assert '"de"' in (await client.read_resource("shelf://items/7?lang=de")).contents[0].text
            assert (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content.text == "Greet Ada, warm."
            with pytest.raises(ResourceNotFound):
                await client.read_resource("shelf://nothing")
            await client.ping()


def test_without_the_dialect_a_client_of_0_7_is_refused():
    with pytest.raises(McpError, match="protocolVersion"), SyncClient(make_app(), revision="0.7"):
        pass


def test_dialects_have_names():
    with pytest.raises(ValueError, match="0.7 and bare"):
        make_app(dialects=["0.8"])
