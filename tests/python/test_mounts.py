"""Servers in servers: names, middleware of every level, changes, and lifespans."""

from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any

import pytest

from gudgeon import Depends, Server
from gudgeon.auth import ApiKeys
from gudgeon.testing import connect, connect_sync
from gudgeon.types import ToolResult


def named(app: Any, level: str) -> None:
    @app.middleware(on="tools/call")
    async def name(request: Any, next: Any) -> Any:
        result = await next(request)
        return ToolResult(f"{level}[{request.params['name']}]({result.text})")


def test_each_level_runs_its_middleware_and_sees_its_own_names() -> None:
    house, room, shelf = Server("house"), Server("room"), Server("shelf")
    for app, level in ((house, "house"), (room, "room"), (shelf, "shelf")):
        named(app, level)
    room.mount("shelf", shelf)
    house.mount("room", room)

    @shelf.tool
    def open(title: str) -> str:
        return title

    @shelf.tool
    async def close(title: str) -> str:
        return title

    with connect_sync(house) as client:
        for name in ("open", "close"):
            said = client.call_tool(f"room_shelf_{name}", {"title": "Dune"}).text
            assert said == f"house[room_shelf_{name}](room[shelf_{name}](shelf[{name}](Dune)))"
    with connect_sync(shelf) as client:
        assert client.call_tool("open", {"title": "x"}).text == "shelf[open](x)"


def test_only_the_middle_has_middleware_and_it_comes_late() -> None:
    house, room, shelf = Server("house"), Server("room"), Server("shelf")
    shelf.tool(lambda: "ok", name="tidy")
    room.mount("shelf", shelf)
    house.mount("room", room)
    named(room, "room")
    with connect_sync(house) as client:
        assert client.call_tool("room_shelf_tidy").text == "room[shelf_tidy](ok)"
    with connect_sync(shelf) as client:
        assert client.call_tool("tidy").text == "ok"


def test_completions_and_resources_are_reached_under_their_names() -> None:
    seen: list[Any] = []
    house, shelf = Server("house"), Server("shelf")

    @house.middleware
    async def note(request: Any, next: Any) -> Any:
        seen.append((request.method, dict(request.params)))
        return await next(request)

    @shelf.prompt
    def review(title: str) -> str:
        return title

    @shelf.complete("review", "title")
    def titles(prefix: str) -> list[str]:
        return [prefix + "!"]

    @shelf.resource("shelf://{id}")
    def book(id: str) -> str:
        return id

    # A URI needs no slashes.
    @shelf.resource("urn:page:{number}")
    def page(number: str) -> str:
        return number

    @shelf.complete("urn:page:{number}", "number")
    def numbers(prefix: str) -> list[str]:
        return [prefix + "?"]

    house.mount("s", shelf)
    with connect_sync(house) as client:
        assert client.complete("urn:page:{number}", "number", "1").values == ("1?",)
        assert seen.pop()[1]["ref"] == {"type": "ref/resource", "uri": "urn:page:{number}"}
        assert client.complete("s_review", "title", "D").values == ("D!",)
        assert client.read_resource("shelf://7").text == "7"
    said = dict(seen)
    assert said["completion/complete"]["ref"] == {"type": "ref/prompt", "name": "s_review"}
    assert said["resources/read"]["uri"] == "shelf://7"


async def test_notifications_of_a_mounted_server_reach_the_clients_of_the_outer_servers() -> None:
    house, room, shelf = Server("house"), Server("room"), Server("shelf")

    @shelf.resource("shelf://about")
    def about() -> str:
        return "x"

    room.mount("shelf", shelf)
    house.mount("room", room)
    for era in ("2025-06-18", "2026-07-28"):
        async with connect(house, revision=era) as client, client.subscribe("shelf://about") as changes:
            shelf.notify_updated("shelf://about")
            change = await anext(changes)
            assert (change.kind, change.uri) == ("updated", "shelf://about")


def test_tags_of_a_mounted_server_choose_its_own_things_everywhere() -> None:
    house, shelf = Server("house"), Server("shelf")
    house.tool(lambda: "house", name="dust", tags=["chores"])
    shelf.tool(lambda: "shelf", name="tidy", tags=["chores"])
    house.mount("shelf", shelf)
    shelf.tools.disable(tags=["chores"])
    with connect_sync(house) as client:
        assert [tool.name for tool in client.list_tools()] == ["dust"]
    shelf.tools.enable(tags=["chores"])
    with connect_sync(house) as client:
        assert [tool.name for tool in client.list_tools()] == ["dust", "shelf_tidy"]
    house.tools.disable(tags=["chores"])
    with connect_sync(house) as client:
        assert client.list_tools() == []
    with connect_sync(shelf) as client:
        assert [tool.name for tool in client.list_tools()] == ["tidy"]


def test_what_is_removed_or_changed_is_so_everywhere() -> None:
    house, shelf = Server("house"), Server("shelf")
    house.mount("shelf", shelf)
    shelf.tool(lambda: "x", name="tidy")
    shelf.tools.update("tidy", title="Tidy up")
    assert house.tools["shelf_tidy"].title == "Tidy up"
    shelf.tools.remove("tidy")
    assert list(house.tools) == []
    shelf.tool(lambda: "y", name="tidy")
    assert [tool.name for tool in house.tools] == ["shelf_tidy"]


@pytest.mark.parametrize("prefix", ["", "a b", "a/b", "ä"])
def test_a_prefix_that_fits_no_name_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="a prefix is one or more letters"):
        Server("t").mount(prefix, Server("o"))


def test_what_cant_be_mounted_changes_nothing() -> None:
    house, shelf = Server("house"), Server("shelf")
    shelf.tool(lambda: "x", name="one")
    shelf.tool(lambda: "x", name="two")
    house.tool(lambda: "x", name="shelf_two")
    with pytest.raises(ValueError, match="'shelf_two' is already registered"):
        house.mount("shelf", shelf)
    assert [tool.name for tool in house.tools] == ["shelf_two"]
    house.mount("other", shelf)
    with pytest.raises(ValueError, match="itself"):
        shelf.mount("house", house)
    house.tool(lambda: "x", name="other_three")
    with pytest.raises(ValueError, match="'other_three' is already registered with 'house'"):
        shelf.tool(lambda: "x", name="three")
    assert "three" not in shelf.tools
    with pytest.raises(TypeError, match="takes a prefix and a Server"):
        house.mount("x", "shelf")  # type: ignore[call-overload]


def test_a_server_that_authenticates_its_callers_itself_is_not_mounted() -> None:
    house, shelf = Server("house"), Server("shelf", auth=ApiKeys({"s3cret": "ada"}))
    shelf.tool(lambda: "x", name="one")
    with pytest.raises(ValueError, match='"shelf" can\'t be mounted into "house".*give `auth` to "house" only'):
        house.mount("shelf", shelf)
    assert [tool.name for tool in house.tools] == []
    guarded, open_shelf = Server("house", auth=ApiKeys({"s3cret": "ada"})), Server("shelf")
    guarded.mount("shelf", open_shelf)


def test_mount_takes_its_arguments_in_either_order_and_by_keyword() -> None:
    for number in range(5):
        house, shelf = Server("house"), Server("shelf")
        shelf.tool(lambda: "x", name="one")
        ways = (
            lambda: house.mount("s", shelf),
            lambda: house.mount(shelf, "s"),
            lambda: house.mount(shelf, prefix="s"),
            lambda: house.mount("s", other=shelf),
            lambda: house.mount(prefix="s", other=shelf),
        )
        ways[number]()
        assert [tool.name for tool in house.tools] == ["s_one"]
    for given, text in (
        ((shelf,), "needs a prefix for the names of 'shelf'"),
        (("s",), "got no server"),
        (("s", shelf, "t"), "and got 't' as well"),
        ((3, shelf), "prefix= is a string, not 3"),
    ):
        with pytest.raises(TypeError, match=text):
            Server("house").mount(*given)  # type: ignore[call-overload]


def test_the_same_server_may_be_mounted_twice() -> None:
    house, shelf = Server("house"), Server("shelf")
    named(house, "house")
    shelf.tool(lambda: "ok", name="tidy")
    house.mount("left", shelf)
    house.mount("right", shelf)
    with connect_sync(house) as client:
        assert client.call_tool("right_tidy").text == "house[right_tidy](ok)"
        assert client.call_tool("left_tidy").text == "house[left_tidy](ok)"


# ── lifespans ────────────────────────────────────────────────────────────────────────────────────────


def recording_lifespan(events: list[str], name: str, fails: bool = False) -> Any:
    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncGenerator[str]:
        if fails:
            raise RuntimeError(f"{name} can't begin")
        events.append(f"+{name}")
        try:
            yield name
        finally:
            events.append(f"-{name}")

    return lifespan


def recording_sync_lifespan(events: list[str], name: str, fails: bool = False) -> Any:
    @contextmanager
    def lifespan(_: Any) -> Generator[str]:
        if fails:
            raise RuntimeError(f"{name} can't begin")
        events.append(f"+{name}")
        try:
            yield name
        finally:
            events.append(f"-{name}")

    return lifespan


async def test_lifespans_are_entered_from_outside_and_left_from_inside() -> None:
    events: list[str] = []
    house = Server("house", lifespan=recording_lifespan(events, "house"))
    house.mount("a", Server("a", lifespan=recording_lifespan(events, "a")))
    house.mount("b", Server("b", lifespan=recording_lifespan(events, "b")))
    async with connect(house):
        pass
    assert events == ["+house", "+a", "+b", "-b", "-a", "-house"]


async def test_one_that_comes_too_late_is_refused() -> None:
    house, shelf, books = Server("house"), Server("shelf"), Server("books", lifespan=recording_lifespan([], "books"))
    shelf.mount("books", books)
    async with connect(house):
        house.mount("plain", Server("plain"))
        with pytest.raises(ValueError, match="the lifespan of 'books' begins with that of 'house'.*mount it before"):
            house.mount("shelf", shelf)
    house.mount("shelf", shelf)
    async with connect(house):
        pass


async def test_one_that_fails_leaves_what_was_entered() -> None:
    events: list[str] = []
    house = Server("house", lifespan=recording_lifespan(events, "house"))
    house.mount("a", Server("a", lifespan=recording_lifespan(events, "a")))
    house.mount("b", Server("b", lifespan=recording_lifespan(events, "b", fails=True)))
    with pytest.raises(RuntimeError, match="b can't begin"):
        await house._lifespan.aenter()
    assert events == ["+house", "+a", "-a", "-house"]
    assert house._lifespan._users == 0


def test_one_that_fails_leaves_what_was_entered_without_a_loop() -> None:
    events: list[str] = []
    house = Server("house", lifespan=recording_sync_lifespan(events, "house"))
    house.mount("a", Server("a", lifespan=recording_sync_lifespan(events, "a")))
    house.mount("b", Server("b", lifespan=recording_sync_lifespan(events, "b", fails=True)))
    with pytest.raises(RuntimeError, match="b can't begin"):
        house._lifespan.enter()
    assert events == ["+house", "+a", "-a", "-house"]


def test_an_override_counts_in_what_is_mounted_unless_that_has_its_own() -> None:
    def whose() -> str:
        return "real"

    street, house, room = Server("street"), Server("house"), Server("room")
    street.mount("b", house)
    house.mount("a", room)

    @room.tool
    def cup(it: Annotated[str, Depends(whose)]) -> str:
        return it

    with connect_sync(street) as client:

        def said() -> str:
            return client.call_tool("b_a_cup").text

        with street.override(whose, lambda: "street's"):
            assert said() == "street's"
            with room.override(whose, lambda: "room's"):
                assert said() == "room's"
            assert said() == "street's"
        assert said() == "real"
