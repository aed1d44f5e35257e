"""Options, annotations and members by name: both spellings, and an error with the fix for every other name."""

import subprocess
import sys
from typing import Any

import pytest

from gudgeon import Client, ClientGroup, Context, Server, SyncClient, SyncContext, ask
from gudgeon.testing import ERAS, connect_sync
from gudgeon.types import Annotations, Icon, Implementation, ToolAnnotations


def text_of(call: Any, kind: type[Exception] = TypeError) -> str:
    with pytest.raises(kind) as caught:
        call()
    return str(caught.value)


# ── unknown options ──────────────────────────────────────────────────────────────────────────────────

APP = Server("shelf")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Server("s", titel="x"), "Server 's': unknown option 'titel'; did you mean 'title'?"),
        (lambda: Server("s", life_span=1), "Server 's': unknown option 'life_span'; did you mean 'lifespan'?"),
        (lambda: APP.tool("add", timout=1), "tool 'add': unknown option 'timout'; did you mean 'timeout'?"),
        (lambda: APP.tool(expose_error=()), "@app.tool: unknown option 'expose_error'; did you mean 'expose_errors'?"),
        (lambda: APP.tool(colour="red"), "@app.tool: unknown option 'colour'; it takes name, title, description, "),
        (
            lambda: APP.resource("a://b", mimeType="x/y"),
            "resource 'a://b': unknown option 'mimeType'; did you mean 'mime_type'?",
        ),
        (lambda: APP.prompt(tag=["x"]), "@app.prompt: unknown option 'tag'; did you mean 'tags'?"),
        (lambda: Client(APP, timout=1), "Client: unknown option 'timout'; did you mean 'timeout'?"),
        (lambda: SyncClient(APP, onLog=print), "Client: unknown option 'onLog'; did you mean 'on_log'?"),
        (lambda: APP.asgi(max_boddy=1), "asgi(): unknown option 'max_boddy'; did you mean 'max_body'?"),
        (lambda: APP.run("http://127.0.0.1:0/mcp", corse=True), "run(): unknown option 'corse'; did you mean 'cors'?"),
        (lambda: APP.run(show_banner=False), "run(): unknown option 'show_banner'; leave it out"),
        (lambda: ask.sample("Hi", maxTokens=1), "sample(): unknown option 'maxTokens'; did you mean 'max_tokens'?"),
        (
            lambda: ask.elicit("Hi", response_type=bool),
            "elicit(): unknown option 'response_type'; did you mean 'type'?",
        ),
    ],
)
def test_an_unknown_option_is_refused_with_the_name_that_was_meant(call: Any, said: str) -> None:
    assert text_of(call).startswith(said)


def test_an_unknown_option_of_a_call_is_refused() -> None:
    app = Server("s")
    app.tool(lambda: "ok", name="tidy")
    with SyncClient(app) as client:
        text = text_of(lambda: client.call_tool("tidy", timout=3))
        assert text == "call_tool(): unknown option 'timout'; did you mean 'timeout'?"
        text = text_of(lambda: client.call_tool("tidy", progress_handler=print))
        assert text == "call_tool(): unknown option 'progress_handler'; did you mean 'on_progress'?"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: Server("s", token_verifier=object()), "unknown option 'token_verifier'; write Server('…', auth=…)"),
        (lambda: Client(APP, store=""), "unknown option 'store'; a client keeps nothing; leave it out"),
        (lambda: APP.tool(output_schema={}), "unknown option 'output_schema'; did you mean 'output'?"),
        (lambda: APP.tool(input_schema={}), "unknown option 'input_schema'; did you mean 'input'?"),
        (lambda: Server("s", port=80), "unknown option 'port'; write the address: app.run("),
        (lambda: Client(APP, sampling_callback=print), "unknown option 'sampling_callback'; did you mean 'on_sample'?"),
    ],
)
def test_options_of_other_sdks_are_refused_with_ours(call: Any, said: str) -> None:
    assert said in text_of(call)


def test_no_list_of_options_names_what_does_not_exist() -> None:
    for call in (
        lambda: Server("s", qqq=1),
        lambda: APP.tool(qqq=1),
        lambda: APP.resource("a://b", qqq=1),
        lambda: APP.prompt(qqq=1),
        lambda: Client(APP, qqq=1),
    ):
        listed = text_of(call).partition("it takes ")[2].split(", ")
        # Only a server has a store.
        assert listed[1:] and ("store" in listed) == ("page_size" in listed)


# ── annotations, icons and members in both spellings ─────────────────────────────────────────────────


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    "given",
    [
        ToolAnnotations(read_only=True, open_world=False),
        {"read_only": True, "open_world": False},
        {"readOnlyHint": True, "openWorldHint": False},
        {"readOnly": True, "open_world": False},
    ],
    ids=["value", "python", "specification", "mixed"],
)
def test_annotations_of_a_tool_are_taken_in_every_spelling(era: str, given: Any) -> None:
    app = Server("s")
    app.tool(lambda: "ok", name="tidy", annotations=given)
    app.tool(lambda: "ok", name="later")
    app.tools.update("later", annotations=given)
    assert app.tools["tidy"].annotations == ToolAnnotations(read_only=True, open_world=False)
    with connect_sync(app, revision=era) as client:
        expected = None if era == "2024-11-05" else ToolAnnotations(read_only=True, open_world=False)
        assert [tool.annotations for tool in client.list_tools()] == [expected, expected]


def test_annotations_and_icons_of_a_resource_are_taken_in_both_spellings() -> None:
    app = Server("s", icons=[{"src": "https://a/b.png", "mimeType": "image/png"}])
    app.resource(
        "a://b", name="b", annotations={"lastModified": "2026-01-01"}, icons=[{"src": "x:y", "mime_type": "image/png"}]
    )(lambda: "x")
    assert app.resources["a://b"].annotations == Annotations(last_modified="2026-01-01")
    assert app.resources["a://b"].icons == (Icon("x:y", mime_type="image/png"),)
    client = SyncClient(app, client_info={"name": "reader", "version": "1", "websiteUrl": "https://a"})
    with client:
        assert client.server.icons == (Icon("https://a/b.png", mime_type="image/png"),)


def test_client_info_is_taken_as_a_mapping() -> None:
    app = Server("s")

    @app.tool
    def who(ctx: SyncContext) -> str:
        return f"{ctx.client.name} {ctx.client.title}"

    for info in (Implementation("reader", "1", title="Reader"), {"name": "reader", "version": "1", "title": "Reader"}):
        with SyncClient(app, client_info=info) as client:
            assert client.call_tool("who").text == "reader Reader"
    assert text_of(lambda: SyncClient(app, client_info={"name": "x", "versoin": "1"})) == (
        "Client: client_info=: unknown key 'versoin'; did you mean 'version'?"
    )


@pytest.mark.parametrize(
    ("annotations", "said"),
    [
        ({"readonly_hint": True}, "tool 'x': annotations=: unknown key 'readonly_hint'; did you mean 'read_only'?"),
        ({"destructiv": True}, "tool 'x': annotations=: unknown key 'destructiv'; did you mean 'destructive'?"),
        ({"read_only": "yes"}, "tool 'x': annotations=: ToolAnnotations: read_only= is True, False or None, not 'yes'"),
        (True, "tool 'x': annotations= takes a ToolAnnotations or a mapping of its fields, not True"),
    ],
)
def test_wrong_annotations_are_refused_with_the_fix(annotations: Any, said: str) -> None:
    assert text_of(lambda: Server("s").tool("x", annotations=annotations)) == said


def test_members_that_update_does_not_know_are_refused() -> None:
    app = Server("s")
    app.tool(lambda: "ok", name="tidy")
    app.resource("a://b", name="b")(lambda: "x")
    said = "'s': update('tidy'): unknown member 'titel'; did you mean 'title'?"
    assert text_of(lambda: app.tools.update("tidy", titel="x")) == said
    for member in ("inputSchema", "output_schema", "timeout", "name"):
        said = f"'s': update('tidy'): {member} can't be changed; remove this tool and register it again"
        assert text_of(lambda: app.tools.update("tidy", **{member: None})) == said
    assert text_of(lambda: app.tools.update("tidy", title=5)) == "'s': update('tidy'): title= must be a string, not 5"
    assert "did you mean 'mime_type'?" in text_of(lambda: app.resources.update("a://b", mimeType="text/plain"))
    app.resources.update("a://b", mime_type="text/plain", name="bee")
    assert (app.resources["a://b"].mime_type, app.resources["a://b"].name) == ("text/plain", "bee")
    assert "unknown key 'readOnlyHnt'" in text_of(lambda: app.tools.update("tidy", annotations={"readOnlyHnt": True}))


# ── names of other SDKs ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.io
@pytest.mark.parametrize(("name", "ours"), [("FastMCP", "Server"), ("ClientSession", "Client")])
def test_importing_a_name_of_another_sdk_names_ours(name: str, ours: str) -> None:
    run = subprocess.run([sys.executable, "-c", f"from gudgeon import {name}"], capture_output=True, text=True)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == f"ImportError: cannot import name {name!r} from 'gudgeon': here it is {ours}"


def test_attributes_of_other_sdks_name_ours() -> None:
    app = Server("s")
    assert "app.middleware(fn)" in text_of(lambda: app.add_middleware, AttributeError)
    assert "app.resources.remove(uri)" in text_of(lambda: app.remove_resource, AttributeError)
    told = []

    @app.tool
    def look(ctx: SyncContext) -> str:
        told.append(text_of(lambda: ctx.report_progress, AttributeError))
        return "ok"

    @app.tool
    async def wait(ctx: Context) -> str:
        told.append(text_of(lambda: ctx.list_roots, AttributeError))
        return "ok"

    with SyncClient(app) as client:
        client.call_tool("look")
        client.call_tool("wait")
    assert "ctx.progress(progress, total)" in told[0] and "ctx.roots()" in told[1]


@pytest.mark.io
def test_a_transport_by_name_works_for_stdio_and_gives_the_address_for_http() -> None:
    code = "from gudgeon import Server; Server('s').run(transport='stdio')"
    with SyncClient([sys.executable, "-c", code]) as client:
        assert client.server.name == "s"
    app = Server("s")
    for name in ("http", "streamable-http"):
        said = f"run(transport={name!r}): give the address: app.run('http://0.0.0.0:9000/mcp')"
        assert text_of(lambda: app.run(transport=name, host="0.0.0.0", port=9000), ValueError) == said
    assert "legacy_sse=True" in text_of(lambda: app.run("sse"), ValueError)
    assert "'stdio'" in text_of(lambda: app.run(transport="pigeon"), ValueError)


def test_a_group_refuses_unknown_options_of_its_clients() -> None:
    assert "did you mean 'timeout'?" in text_of(lambda: ClientGroup({"s": Server("s")}, timout=1))
