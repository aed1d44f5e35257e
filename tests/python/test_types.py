"""Value types: frozen, equal by value, hashable, and faithful to the JSON of the newest revision."""

import copy
import json
import pathlib
import pickle
import subprocess
import sys
import typing
from typing import Any

import pytest

from gudgeon import types as t
from gudgeon.errors import (
    ConnectFailed,
    Declined,
    McpError,
    ProtocolError,
    ResourceNotFound,
    ToolError,
    UrlElicitationRequired,
)

PNG = b"\x89PNG\r\n\x1a\n"

ROUND_TRIPS: list[tuple[Any, dict[str, Any]]] = [
    (
        t.Icon("a.png", mime_type="image/png", sizes=["48x48"], theme="dark"),
        {"src": "a.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"},
    ),
    (
        t.Annotations(audience=["user"], priority=0.5, last_modified="2025"),
        {"audience": ["user"], "priority": 0.5, "lastModified": "2025"},
    ),
    (
        t.ToolAnnotations(title="T", read_only=True, destructive=False),
        {"title": "T", "readOnlyHint": True, "destructiveHint": False},
    ),
    (
        t.Implementation("n", "1", website_url="https://e.org"),
        {"name": "n", "version": "1", "websiteUrl": "https://e.org"},
    ),
    (t.ServerInfo("n", "1", capabilities={"tools": {}}), {"name": "n", "version": "1", "capabilities": {"tools": {}}}),
    (t.ClientInfo("n", "1", capabilities={"roots": {}}), {"name": "n", "version": "1", "capabilities": {"roots": {}}}),
    (t.Text("hi", meta={"k": 1}), {"type": "text", "text": "hi", "_meta": {"k": 1}}),
    (t.Image(PNG), {"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"}),
    (t.Audio(b"x", format="mp3"), {"type": "audio", "data": "eA==", "mimeType": "audio/mpeg"}),
    (t.EmbeddedResource("a:b", text="x"), {"type": "resource", "resource": {"uri": "a:b", "text": "x"}}),
    (
        t.EmbeddedResource("a:b", blob=b"x", mime_type="x/y"),
        {"type": "resource", "resource": {"uri": "a:b", "mimeType": "x/y", "blob": "eA=="}},
    ),
    (t.ResourceLink("a:b", name="n", size=3), {"type": "resource_link", "uri": "a:b", "name": "n", "size": 3}),
    (t.ToolUse("1", "add", {"a": 1}), {"type": "tool_use", "id": "1", "name": "add", "input": {"a": 1}}),
    (
        t.ToolOutcome("1", ["x"], is_error=True),
        {"type": "tool_result", "toolUseId": "1", "content": [{"type": "text", "text": "x"}], "isError": True},
    ),
    (t.Other({"type": "hologram", "x": [1, {"y": None}]}), {"type": "hologram", "x": [1, {"y": None}]}),
    (t.Tool(name="n", input_schema={"type": "object"}), {"name": "n", "inputSchema": {"type": "object"}}),
    (
        t.Resource(name="n", uri="a:b", mime_type="x/y", meta={"k": 1}),
        {"name": "n", "uri": "a:b", "mimeType": "x/y", "_meta": {"k": 1}},
    ),
    (t.ResourceTemplate(name="n", uri_template="a:{b}"), {"name": "n", "uriTemplate": "a:{b}"}),
    (
        t.Prompt(name="n", arguments=(t.PromptArgument(name="a", required=True),)),
        {"name": "n", "arguments": [{"name": "a", "required": True}]},
    ),
    (
        t.ToolResult(["a"], structured_content=[1], meta={"k": 1}),
        {"content": [{"type": "text", "text": "a"}], "structuredContent": [1], "_meta": {"k": 1}},
    ),
    (t.ResourceResult(["x", b"y"]), {"contents": [{"text": "x"}, {"blob": "eQ=="}]}),
    (t.user("hi"), {"role": "user", "content": {"type": "text", "text": "hi"}}),
    (
        t.assistant(["a", t.Text("b")]),
        {"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
    ),
    (
        t.PromptResult(["a"], description="d"),
        {"messages": [{"role": "user", "content": {"type": "text", "text": "a"}}], "description": "d"},
    ),
    (t.Completion(["a"], total=2, has_more=True), {"values": ["a"], "total": 2, "hasMore": True}),
    (t.Root("file:///a", name="a"), {"uri": "file:///a", "name": "a"}),
    (
        t.SampleResult("x", model="m"),
        {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m", "stopReason": "endTurn"},
    ),
    (
        t.SampleRequest(
            messages=(t.user("a"),),
            max_tokens=5,
            models=("fast",),
            cost_priority=0.1,
            system="s",
            stop=("x",),
            tool_choice="none",
        ),
        {
            "messages": [{"role": "user", "content": {"type": "text", "text": "a"}}],
            "maxTokens": 5,
            "modelPreferences": {"hints": [{"name": "fast"}], "costPriority": 0.1},
            "systemPrompt": "s",
            "stopSequences": ["x"],
            "toolChoice": {"mode": "none"},
        },
    ),
    (
        t.ElicitRequest(mode="form", message="m", schema={"type": "object"}),
        {"mode": "form", "message": "m", "requestedSchema": {"type": "object"}},
    ),
    (
        t.ElicitRequest(mode="url", message="m", url="https://e.org", id="1"),
        {"mode": "url", "message": "m", "url": "https://e.org", "elicitationId": "1"},
    ),
    (
        t.InputRequired(questions={"r": t.RootsRequest()}, state="s"),
        {
            "resultType": "input_required",
            "inputRequests": {"r": {"method": "roots/list", "params": {}}},
            "requestState": "s",
        },
    ),
    (t.LogMessage(level="info", data=None), {"level": "info", "data": None}),
    (t.Progress(progress=1, total=2), {"progress": 1, "total": 2}),
    (t.Change(kind="updated", uri="a:b"), {"kind": "updated", "uri": "a:b"}),
]


@pytest.mark.parametrize(("value", "said"), ROUND_TRIPS, ids=lambda item: type(item).__name__)
def test_json_there_and_back(value: Any, said: dict[str, Any]) -> None:
    assert value.to_dict() == said
    assert json.loads(json.dumps(value.to_dict())) == said
    again = type(value).from_dict(said)
    assert again == value
    assert hash(again) == hash(value)
    assert repr(again).startswith(type(value).__name__ + "(")
    with pytest.raises(AttributeError, match="is frozen"):
        value.anything = 1


def test_content_finds_its_kind_and_passes_strangers_through() -> None:
    for value, said in ROUND_TRIPS:
        if isinstance(value, t.Content):
            assert t.content_from_dict(said) == value
            assert t.Content.from_dict(said) == value
    assert t.content_from_dict({"type": 5}).to_dict() == {"type": 5}
    assert t.content_from_dict({}).to_dict() == {}


def test_unknown_keys_are_ignored_and_missing_ones_named() -> None:
    assert t.Icon.from_dict({"src": "a", "later": 1}) == t.Icon("a")
    with pytest.raises(ValueError, match=r"Icon\.from_dict: 'src' is missing"):
        t.Icon.from_dict({})
    with pytest.raises(TypeError, match="takes a JSON object, not list"):
        t.Icon.from_dict([])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="Progress has no field 'x'"):
        t.Progress(progress=1, x=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Tool needs 'input_schema'"):
        t.Tool(name="x")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (t.Text, {"text": 5}),
        (t.Text, {"text": None}),
        (t.Image, {"data": "%%%", "mimeType": "image/png"}),
        (t.Image, {"data": 5, "mimeType": "image/png"}),
        (t.ToolResult, {"content": None}),
        (t.ToolResult, {"content": 5}),
        (t.ToolResult, {"content": ["x"]}),
        (t.ResourceResult, {"contents": [{"text": 5}]}),
        (t.Tool, {"name": "n", "inputSchema": {}, "annotations": 5}),
        (t.Tool, {"name": "n", "inputSchema": {}, "annotations": {"readOnlyHint": "yes"}}),
        (t.Tool, {"name": "n", "inputSchema": {}, "description": 5}),
        (t.Tool, {"name": ["n"], "inputSchema": {}}),
        (t.Resource, {"name": "n", "uri": 5}),
        (t.Resource, {"name": "n", "uri": "a:b", "size": "5"}),
        (t.ResourceTemplate, {"name": "n", "uriTemplate": None}),
        (t.Prompt, {"name": "n", "arguments": [{"name": "a", "required": "yes"}]}),
        (t.Image, {"data": "", "mimeType": 5}),
        (t.ResourceLink, {"uri": "a:b", "name": 5}),
        (t.ResourceResult, {"contents": [{"uri": 5, "text": ""}]}),
        (t.Prompt, {"name": "n", "arguments": [None]}),
        (t.Message, {"role": "user", "content": "x"}),
        (t.InputRequired, {"inputRequests": {"a": {"method": "sampling/createMessage", "params": {"messages": 5}}}}),
    ],
)
def test_wrong_json_from_a_peer_is_a_value_error(kind: Any, data: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        kind.from_dict(data)


def test_media_from_paths_and_bytes(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.jpg").write_bytes(b"abc")
    assert t.Image(tmp_path / "a.jpg").mime_type == "image/jpeg"
    assert t.Image(b"abc", format="svg").mime_type == "image/svg+xml"
    assert t.Image(b"RIFF1234WEBP").mime_type == "image/webp"
    assert t.Audio(b"RIFF1234WAVE").mime_type == "audio/wav"
    with pytest.raises(ValueError, match="pass format= or mime_type="):
        t.Image(b"abc")
    with pytest.raises(TypeError, match=r"write Image\(Path\('a.png'\)\)"):
        t.Image("a.png")  # type: ignore[arg-type]


def test_files_are_text_or_blob(tmp_path: pathlib.Path) -> None:
    (tmp_path / "a.md").write_text("# é", encoding="utf-8")
    (tmp_path / "a.bin").write_bytes(b"\xff\x00")
    text, blob = t.File(tmp_path / "a.md"), t.File(str(tmp_path / "a.bin"))
    assert (text.text, text.blob) == ("# é", None)
    assert text.uri == (tmp_path / "a.md").as_uri()
    assert (blob.text, blob.blob, blob.mime_type) == (None, b"\xff\x00", "application/octet-stream")


def test_tool_result_data_and_text() -> None:
    assert t.ToolResult(["a", t.Image(PNG), "b"]).text == "a\nb"
    assert t.ToolResult("a").data == "a"
    assert t.ToolResult("a", structured_content={"x": 1}).data == {"x": 1}
    assert t.ToolResult("a")._with_data(5).data == 5
    assert t.ToolResult.from_dict({}).content == ()
    assert typing.get_origin(t.ToolResult[int]) is t.ToolResult
    with pytest.raises(TypeError, match="JSON belongs in structured_content="):
        t.ToolResult({"a": 1})
    with pytest.raises(TypeError, match="not int among them"):
        t.ToolResult([1])


def test_resource_result_takes_anything() -> None:
    assert t.ResourceResult({"a": 1}).contents[0] == t.ResourceContents(text='{"a":1}', mime_type="application/json")
    assert t.ResourceResult(b"x", mime_type="a/b").blob == b"x"
    assert t.ResourceResult([t.ResourceContents(uri="a:b", text="x"), "y"]).text == "x\ny"


def test_wrong_values_name_the_fix() -> None:
    with pytest.raises(ValueError, match='"user" or "assistant"'):
        t.Message("system", "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"Completion\(\['ab'\]\)"):
        t.Completion("ab")
    with pytest.raises(ValueError, match="either text= or blob="):
        t.EmbeddedResource("a:b")
    with pytest.raises(ValueError, match="unknown request"):
        t.InputRequired.from_dict({"inputRequests": {"a": {"method": "x"}}})


def test_errors_are_one_flat_line_with_a_hint() -> None:
    error = McpError("broke\n  badly", hint="try again", target="https://e.org", phase="connect")
    assert str(error) == "connect https://e.org: broke badly (hint: try again)"
    assert "status 3" in str(ConnectFailed("no", exit_status=3, stderr="a\nb"))
    assert (ProtocolError(-32000, "m", {"a": 1}).code, ProtocolError(-1, "m", 5).data) == (-32000, 5)
    assert ResourceNotFound("a:b").data == {"uri": "a:b"}
    assert str(Declined("Delete?")) == "The user declined: Delete?"
    tool = ToolError("line\nline", k=1)
    assert (str(tool), tool.result.is_error, tool.result.meta) == ("line\nline", True, {"k": 1})


ERRORS = [
    McpError("no", code=-1, data={"k": [1]}, hint="h", target="t", phase="call"),
    ConnectFailed("no", exit_status=3, stderr="a\nb", hint="h"),
    ProtocolError(-32000, "m", {"a": 1}),
    ResourceNotFound("a:b", "gone"),
    UrlElicitationRequired([t.ElicitRequest(mode="url", message="Log in", url="https://e.org", id="1")]),
    ToolError("line\nline", k=1),
    ToolError._from_result(t.ToolResult("text", is_error=True)),
    Declined("Delete?"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_go_to_other_processes_as_they_are(error: McpError) -> None:
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert (type(other), str(other), other.args) == (type(error), str(error), error.args)
        assert vars(other) == vars(error)


@pytest.mark.parametrize("value", [value for value, _ in ROUND_TRIPS], ids=lambda value: type(value).__name__)
def test_values_go_to_other_processes_as_they_are(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value


@pytest.mark.io
def test_types_load_no_heavy_module() -> None:
    code = (
        "import sys; before = set(sys.modules); import gudgeon.types, gudgeon.errors, gudgeon.ask;"
        "print(*sorted({'asyncio','pydantic','msgspec','inspect','dataclasses','typing_extensions','enum','typing'}"
        " & (set(sys.modules) - before)))"
    )
    root = str(pathlib.Path(t.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], capture_output=True, text=True, env={"PYTHONPATH": root}, check=True
    )
    assert done.stdout.strip() == ""


def test_what_was_left_out_is_not_shared() -> None:
    one, other = (t.ToolResult.from_dict({"content": []}) for _ in range(2))
    assert one.meta == {}
    assert one.meta is not other.meta
