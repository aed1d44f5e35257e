"""Parameters by keyword, under the names that the reference shows."""

import inspect
from pathlib import Path
from typing import Annotated, Any

import pytest

import gudgeon
from gudgeon import Client, ClientGroup, Context, Depends, Header, Server, SyncClient, SyncClientGroup, SyncContext, ask
from gudgeon.testing import connect, connect_sync
from gudgeon.types import (
    Audio,
    EmbeddedResource,
    File,
    Image,
    Message,
    Other,
    ResourceLink,
    Text,
    ToolResult,
    assistant,
    content_from_dict,
    user,
)


def shop() -> Server:
    app = Server(name="shop")

    def stock() -> int:
        return 2

    @app.tool(name="add")
    def add(a: int, b: Annotated[int, Header(name="B")], more: Annotated[int, Depends(provider=stock)]) -> int:
        return a + b + more

    @app.resource(uri="shop://{id}")
    def item(id: str) -> str:
        return id

    @app.prompt(name="review")
    def review(title: str) -> Message:
        return Message(f"Review {title}", role="user")

    @app.complete(target="review", argument="title")
    def titles(prefix: str) -> list[str]:
        return [prefix + "!"]

    @app.method(name="acme/count")
    def count(n: int) -> dict[str, int]:
        return {"n": n}

    @app.tool
    async def ask_async(ctx: Context) -> list[Any]:
        await ctx.progress(progress=1, total=2, message="half")
        await ctx.log(level="info", data="asked")
        sure = await ctx.elicit(message="Sure?", type=bool)
        name = await ctx.elicit(message="Name?", schema={"type": "object", "properties": {"name": {"type": "string"}}})
        said = await ctx.sample(messages="Hi")
        return [sure, name["name"], said.text, (await ctx.read_resource(uri="shop://7")).text]

    @app.tool
    def ask_sync(ctx: SyncContext) -> list[Any]:
        ctx.progress(progress=1, total=2, message="half")
        ctx.log(level="info", data="asked")
        sure = ctx.elicit(message="Sure?", type=bool)
        tried = ctx.try_elicit(message="Sure?", type=bool, key="again")
        said = ctx.sample(messages="Hi")
        return [sure, tried.value, said.text, ctx.read_resource(uri="shop://7").text]

    return app


ANSWERS = {"Sure?": True, "Name?": {"name": "Ada"}, "Hi": "Hello", "again": False}


async def test_every_parameter_of_servers_and_clients_is_taken_by_keyword() -> None:
    async with connect(server=shop(), answers=ANSWERS) as client:
        assert (await client.call_tool(name="add", arguments={"a": 1, "b": 2})).data == 5
        assert (await client.read_resource(uri="shop://{id}", variables={"id": "9"})).text == "9"
        assert (await client.get_prompt(name="review", arguments={"title": "Emma"})).messages[0].text == "Review Emma"
        assert (await client.complete(target="review", argument="title", value="E")).values == ("E!",)
        assert (await client.request(method="acme/count", params={"n": 3}))["n"] == 3
        assert (await client.list_tools_page(cursor=None)).items
        assert (await client.call_tool(name="ask_async")).data == [True, "Ada", "Hello", "7"]
        await client.set_log_level(level="warning")
    with connect_sync(server=shop(), answers=ANSWERS) as blocking:
        assert blocking.call_tool(name="add", arguments={"a": 1, "b": 2}).data == 5
        assert blocking.call_tool(name="ask_sync").data == [True, False, "Hello", "7"]
        assert blocking.read_resource(uri="shop://9").text == "9"
    async with Client(target=shop()) as client, ClientGroup(targets={"s": shop()}) as group:
        assert client.server.name == "shop"
        assert (await group.call_tool(name="s_add", arguments={"a": 1, "b": 2})).data == 5
    with SyncClient(target=shop()) as blocking, SyncClientGroup(targets={"s": shop()}) as sync_group:
        assert blocking.server.name == "shop"
        assert sync_group.get_prompt(name="s_review", arguments={"title": "Emma"}).messages


def test_values_are_made_by_keyword(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("x")
    assert Text(text="a") == Text("a")
    assert Image(data=b"a", format="png") == Image(b"a", format="png")
    assert Audio(data=b"a", format="wav") == Audio(b"a", format="wav")
    assert EmbeddedResource(uri="a:b", text="x") == EmbeddedResource("a:b", text="x")
    assert ResourceLink(uri="a:b", name="n") == ResourceLink("a:b", name="n")
    assert File(path=path).text == "x"
    assert Other(raw={"type": "new"}).type == "new"
    assert content_from_dict(data={"type": "text", "text": "a"}) == Text.from_dict(data={"type": "text", "text": "a"})
    assert ToolResult(content="a").text == "a"
    assert (
        user(content="Hi") == Message("user", "Hi") == Message(role="user", content="Hi") == Message("Hi", role="user")
    )
    assert assistant(content="Hi") == Message("assistant", content="Hi")
    assert ask.elicit(message="Sure?", type=bool).params == ask.elicit("Sure?", bool).params
    assert ask.elicit_url(message="Go", url="https://a").params == ask.elicit_url("Go", "https://a").params
    assert ask.sample(messages="Hi").params == ask.sample("Hi").params


def test_a_message_without_role_or_content_says_what_is_missing() -> None:
    for wrong in (lambda: Message("user"), lambda: Message("user", "a", "b"), lambda: Message(content="a")):  # type: ignore[call-overload]
        with pytest.raises(TypeError, match=r'write Message\("user", '):
            wrong()
    with pytest.raises(TypeError, match="needs the type of the answer"):
        ask.elicit("Sure?")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="needs the type of the answer"):
        ask.elicit("Sure?", bool, schema={})  # type: ignore[call-overload]


# Functions that take any keyword as data have unnamed parameters of their own; decorators take a function or a name
# first; stores of programs name theirs as they like.
POSITIONAL = {"debug", "info", "warning", "error", "step", "ToolError", "update", "tool", "prompt", "middleware"}
POSITIONAL |= {"get", "put", "take"}


def test_nothing_else_is_positional_only() -> None:
    found = set()
    for public in gudgeon.__all__:
        thing = getattr(gudgeon, public)
        if thing is dict:  # stands for a TypedDict, which is there for type checkers only
            continue
        members = [(public, thing), *(inspect.getmembers(thing, callable) if isinstance(thing, type) else ())]
        for name, member in members:
            if name.startswith("_") or not callable(member) or member.__class__.__module__ == "typing":
                continue
            try:
                parameters = inspect.signature(member).parameters.values()
            except (TypeError, ValueError):
                continue
            if any(
                parameter.kind is parameter.POSITIONAL_ONLY and parameter.name != "self" for parameter in parameters
            ):
                found.add(name)
    assert found <= POSITIONAL | {"with_traceback", "add_note", "mro"}
    assert {"step", "info", "tool"} <= found
