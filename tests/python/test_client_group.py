import asyncio
import json
import sys
from pathlib import Path

import pytest

from gudgeon import ClientGroup, Context, Server, SyncClient, SyncClientGroup
from gudgeon.errors import ConnectFailed, McpError, NotSupported, ProtocolError, ResourceNotFound


def shelf(name):
    app = Server(name)

    @app.tool
    def who() -> str:
        return name

    @app.resource(f"{name}://about")
    def about() -> str:
        return f"about {name}"

    @app.prompt
    def greet() -> str:
        return f"hello {name}"

    return app


TARGETS = {"a": shelf("a"), "a_b": shelf("ab"), "gone": ["gudgeon-no-such-program"]}


@pytest.mark.io
async def test_one_that_fails_leaves_the_others():
    async with ClientGroup(TARGETS) as group:
        assert [tool.name for tool in await group.list_tools()] == ["a_who", "a_b_who"]
        assert (await group.call_tool("a_who")).text == "a"
        assert (await group.call_tool("a_b_who")).text == "ab"
        assert [resource.uri for resource in await group.list_resources()] == ["a://about", "ab://about"]
        assert (await group.read_resource("ab://about")).text == "about ab"
        assert (await group.read_resource("a://about", server="a")).text == "about a"
        assert [prompt.name for prompt in await group.list_prompts()] == ["a_greet", "a_b_greet"]
        assert (await group.get_prompt("a_b_greet")).messages[0].text == "hello ab"
        assert await group.list_resource_templates() == []
        assert set(group.clients) == {"a", "a_b"} and group.clients["a"].server.name == "a"
        assert isinstance(group.errors["gone"], ConnectFailed)
        with pytest.raises(ConnectFailed):
            await group.call_tool("gone_x")
        with pytest.raises(NotSupported, match="a_, a_b_"):
            await group.call_tool("who")
        with pytest.raises(ResourceNotFound):
            await group.read_resource("none://x")


def colliding():
    def having(server, *names):
        app = Server(server)
        for name in names:
            app.tool(name=name)(lambda: server)
            app.prompt(name=name)(lambda: server)
        return app

    return {"a": having("one", "b_x", "b_y"), "a_b": having("other", "x")}


async def test_a_name_that_two_servers_have_is_an_error_that_names_both():
    both = "'a_b_x' is the {0} '.*' of server 'a.*' and the {0} '.*' of server 'a.*'"
    async with ClientGroup(colliding()) as group:
        for kind, ask in (("tool", group.call_tool), ("prompt", group.get_prompt)):
            with pytest.raises(McpError, match=both.format(kind)):
                await getattr(group, f"list_{kind}s")()
            with pytest.raises(McpError, match=both.format(kind)) as caught:
                await ask("a_b_x")
            assert caught.value.hint == "give one of the servers another name"
        assert (await group.call_tool("a_b_y")).text == "one"
    with SyncClientGroup(colliding()) as group:
        with pytest.raises(McpError, match=both.format("tool")):
            group.list_tools()
        with pytest.raises(McpError, match=both.format("prompt")):
            group.get_prompt("a_b_x")
        assert group.call_tool("a_b_y").text == "one"


def asking(name):
    app = Server(name)

    @app.tool
    async def ask(ctx: Context) -> str:
        said = await ctx.sample("?", max_tokens=5)
        return f"{await ctx.elicit('Who?', str)}, {said.text}"

    return app


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_callbacks_get_the_name_of_the_asking_server(era):
    options = {
        "on_elicit": lambda request: request.server,
        "on_sample": lambda request: request.server,
        "revision": era,
    }
    async with ClientGroup({"a": asking("x"), "b": asking("x")}, **options) as group:
        assert (await group.call_tool("a_ask")).text == "a, a"
        assert (await group.call_tool("b_ask")).text == "b, b"
    with SyncClientGroup({"a": asking("x")}, **options) as group:
        assert group.call_tool("a_ask").text == "a, a"
    with SyncClient(
        asking("x"), **{**options, "on_elicit": lambda request: str(request.server), "on_sample": lambda _: "-"}
    ) as one:
        assert one.call_tool("ask").text == "None, -"


def changing(name):
    app = Server(name)
    app.tool(lambda: "", name="tidy")

    @app.tool
    async def change(ctx: Context) -> str:
        await ctx.info("hello")
        app.tools.disable("tidy")
        return name

    return app


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
async def test_logs_and_changes_name_their_server(era):
    told, changed = [], asyncio.Event()
    options = {
        "on_log": lambda message: told.append((message.server, message.data)),
        "on_list_changed": lambda change: (told.append((change.server, change.kind)), changed.set()),
        "revision": era,
    }
    async with ClientGroup({"a": changing("x"), "b": changing("y")}, **options) as group:
        await group.call_tool("b_change")
        await asyncio.wait_for(changed.wait(), 60)
    assert sorted(told) == [("b", "hello"), ("b", "tools")]


def refusing(code):
    app = Server("refuses")

    @app.resource("shop://{item}")
    def item(item: str) -> str:
        if item == "7":
            return "seven"
        raise ProtocolError(code, "not today")

    return app


async def test_what_one_server_refuses_another_may_have():
    targets = {"one": refusing(-32602), "two": refusing(-32000), "three": shelf("shop")}
    async with ClientGroup(targets) as group:
        assert (await group.read_resource("shop://7")).text == "seven"
        assert (await group.read_resource("shop://about")).text == "about shop"
        with pytest.raises(ProtocolError, match="not today") as caught:
            await group.read_resource("shop://8")
        assert caught.value.code == -32602
    with SyncClientGroup(targets) as group:
        assert group.read_resource("shop://about").text == "about shop"
        with pytest.raises(ProtocolError, match="not today"):
            group.read_resource("shop://8")


@pytest.mark.io
def test_the_blocking_face():
    with SyncClientGroup(TARGETS, timeout=60) as group:
        assert [tool.name for tool in group.list_tools()] == ["a_who", "a_b_who"]
        assert group.call_tool("a_b_who").text == "ab"
        assert group.read_resource("a://about").text == "about a"
        assert group.get_prompt("a_greet").messages[0].text == "hello a"
        assert list(group.errors) == ["gone"]


@pytest.mark.io
def test_a_hosts_configuration_is_a_group():
    fake = str(Path(__file__).with_name("fake_server.py"))
    servers = {"fake": {"command": sys.executable, "args": [fake, "legacy"]}}
    with SyncClientGroup({"mcpServers": servers}) as group:
        assert "fake_echo" in [tool.name for tool in group.list_tools()]


def written(tmp_path, text):
    path = tmp_path / "mcp.json"
    path.write_text(text)
    return path


@pytest.mark.io
@pytest.mark.parametrize("kind", [str, Path])
@pytest.mark.parametrize("wrapped", [True, False])
async def test_a_configuration_file_is_a_group(tmp_path, kind, wrapped):
    server = tmp_path / "server.py"
    server.write_text("from gudgeon import Server\napp = Server('t')\napp.tool(lambda: 'ok', name='tidy')\napp.run()\n")
    entries = {"t": {"command": sys.executable, "args": [str(server)]}}
    path = kind(written(tmp_path, json.dumps({"mcpServers": entries} if wrapped else entries)))
    async with ClientGroup(path) as group:
        assert (await group.call_tool("t_tidy")).text == "ok"
    with SyncClientGroup(path) as group:
        assert group.call_tool("t_tidy").text == "ok"


def test_a_configuration_file_is_read_when_the_group_is_entered(tmp_path):
    group = SyncClientGroup(tmp_path / "mcp.json")
    with pytest.raises(FileNotFoundError, match="mcp.json"), group:
        raise AssertionError("it was entered")
    written(tmp_path, json.dumps({"mcpServers": {}}))
    with group:
        assert not group.clients


@pytest.mark.parametrize(
    "text, error, told",
    [
        ("{", ValueError, r"mcp\.json: line 1, column 1: not valid JSON"),
        ("[]", TypeError, r"mcp\.json: a group takes a mapping of names to targets"),
        ('{"mcpServers": {"a": {}}}', ValueError, r'mcp\.json: the server "a": .* needs "command" or "url"'),
    ],
)
async def test_an_error_in_a_configuration_file_is_reported(tmp_path, text, error, told):
    with pytest.raises(error, match=told):
        async with ClientGroup(written(tmp_path, text)):
            raise AssertionError("it was entered")


def test_what_is_no_group_is_refused_at_once():
    with pytest.raises(ValueError, match="not a URL"):
        ClientGroup("http://127.0.0.1/mcp")
    with pytest.raises(TypeError, match="a group takes a mapping of names to targets.*not 5"):
        ClientGroup(5)
    with pytest.raises(TypeError, match="the name of a server in a group must be a string"):
        ClientGroup({1: shelf("a")})


# The tables of cases that Node runs as well.
TARGETS_GIVEN = json.loads(Path(__file__).parents[1].joinpath("client_group_targets.json").read_text())


@pytest.mark.io
@pytest.mark.parametrize("case", TARGETS_GIVEN, ids=[case["case"] for case in TARGETS_GIVEN])
async def test_the_targets_in_what_a_group_is_given(tmp_path, case):
    given = written(tmp_path, case["file"]) if "file" in case else case["given"]
    if "error" in case:
        with pytest.raises((ValueError, TypeError)) as caught:
            async with ClientGroup(given):
                raise AssertionError("it was entered")
        assert case["error"] in str(caught.value)
        return
    async with ClientGroup(given) as group:
        assert list(group.errors) == case["servers"]
        assert all(case.get("shown", "") in str(error) for error in group.errors.values())


CASES = json.loads(Path(__file__).parents[1].joinpath("client_groups.json").read_text())


def having(name, tools=(), resources=(), templates=(), refuses=False):
    """A server with these components; each answers with the server's name."""
    app = Server(name)

    def read():
        if refuses:
            raise ProtocolError(-32000, f"{name} refuses")
        return name

    for tool in tools:
        app.tool(lambda: name, name=tool)
    for uri in resources:
        app.resource(uri, name=uri)(read)

    def one(item: str):
        return read()

    def two(item: str, part: str):
        return read()

    for uri in templates:
        app.resource(uri, name=uri)(two if "{part}" in uri else one)
    return app


def matches(expected, answer):
    try:
        outcome = answer()
    except McpError as error:
        outcome = {"error": str(error)}
    if isinstance(expected, dict):
        return expected["error"] in outcome["error"]
    return outcome == expected


@pytest.mark.io
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_the_server_that_a_request_goes_to(case):
    targets = {
        name: ["gudgeon-no-such-program"] if components is None else having(name, **components)
        for name, components in case["servers"].items()
    }
    with SyncClientGroup(targets) as group:
        if "names" in case:
            assert matches(case["names"], lambda: [tool.name for tool in group.list_tools()])
        for name, expected in case.get("call", {}).items():
            assert matches(expected, lambda name=name: group.call_tool(name).text), name
        for uri, expected in case.get("read", {}).items():
            assert matches(expected, lambda uri=uri: group.read_resource(uri).text), uri


# It ends once all servers have seen the end of their input, or at SIGTERM.
PATIENT = """
import json, os, pathlib, signal, sys, time

folder, name, count = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
signal.signal(signal.SIGTERM, lambda *_: ((folder / f"terminated {name}").touch(), os._exit(1)))
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        result = dict(protocolVersion="2025-11-25", capabilities={}, serverInfo=dict(name=name, version="1"))
        print(json.dumps(dict(jsonrpc="2.0", id=message["id"], result=result)), flush=True)
(folder / f"ended {name}").touch()
while len(list(folder.glob("ended *"))) < count:
    time.sleep(0.01)
"""


def patient(folder):
    names = ["a", "b", "c"]
    return {name: [sys.executable, "-c", PATIENT, str(folder), name, str(len(names))] for name in names}


@pytest.mark.io
async def test_a_group_closes_its_clients_at_the_same_time(tmp_path):
    async with ClientGroup(patient(tmp_path), revision="2025-11-25") as group:
        assert len(group.clients) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ended a", "ended b", "ended c"]


@pytest.mark.io
def test_a_blocking_group_closes_its_clients_at_the_same_time(tmp_path):
    with SyncClientGroup(patient(tmp_path), revision="2025-11-25") as group:
        assert len(group.clients) == 3
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ended a", "ended b", "ended c"]
