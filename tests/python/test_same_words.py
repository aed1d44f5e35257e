"""Errors have the same text in every language: three servers in which everything fails, revision by revision.

`WRITE_WORDS=1` writes what Rust's says into `tests/failures/words.json`: read the diff.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import peer
import pytest

pytestmark = pytest.mark.io

FOLDER = peer.ROOT / "tests/failures"
WORDS = FOLDER / "words.json"
SERVERS = {
    "python": [sys.executable, str(FOLDER / "server.py")],
    "node": ["node", str(FOLDER / "server.mjs")],
    "rust": [str(peer.ROOT / "target/debug/examples/failing_server")],
}
EVERYTHING = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
# Revision, the client's capabilities, and what it answers where the server asks.
CLIENTS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "2024-11-05": ("2024-11-05", {}, None),
    "2025-03-26": ("2025-03-26", {}, None),
    "2025-06-18": ("2025-06-18", {}, None),
    "2025-11-25": ("2025-11-25", {}, None),
    "2025-11-25 declining": ("2025-11-25", EVERYTHING, {"action": "decline"}),
    "2025-11-25 cancelling": ("2025-11-25", EVERYTHING, {"action": "cancel"}),
    "2026-07-28": ("2026-07-28", {}, None),
    "2026-07-28 asked": ("2026-07-28", EVERYTHING, None),
}
MODERN = "2026-07-28"


def calls(revision: str) -> Iterator[tuple[str, dict[str, Any]]]:
    tools = (
        "tool_error crash exposed refused missing sure sure_sync dream places page slow wrong forbids unsaid laden "
        "kept nowhere"
    )
    for name in tools.split():
        yield "tools/call", {"name": name, "arguments": {}}
    for arguments in (
        {},
        {"count": "x", "names": []},
        {"count": 1.5, "names": ["a", 2]},
        {"count": 1, "names": "no"},
        {"count": 1, "names": [], "level": "high"},
        {"count": None, "names": None},
        [],
    ):
        yield "tools/call", {"name": "typed", "arguments": arguments}
    yield "tools/call", {}
    yield "tools/call", {"name": 5}
    for name in "p_tool_error p_crash p_refused p_sure p_slow p_typed nowhere".split():
        yield "prompts/get", {"name": name, "arguments": {}}
    yield "prompts/get", {"name": "p_typed", "arguments": {"name": 1}}
    yield "prompts/get", {"name": "p_typed", "arguments": []}
    yield "prompts/get", {}
    for name in ("tool_error", "crash", "refused", "missing", "sure", "slow", "nowhere"):
        yield "resources/read", {"uri": f"failures://{name}"}
    yield "resources/read", {}
    yield "resources/read", {"uri": 5}
    for method in ("tools/list", "resources/list", "resources/templates/list", "prompts/list"):
        yield method, {"cursor": "made-up"}
    for method in ("acme/crash", "acme/tool_error", "acme/typed", "acme/nowhere"):
        yield method, {}
    yield "acme/typed", {"text": 5}
    for target, argument in (("p_typed", "name"), ("nowhere", "name")):
        reference = {"type": "ref/prompt", "name": target}
        yield "completion/complete", {"ref": reference, "argument": {"name": argument, "value": ""}}
    yield "completion/complete", {}
    yield "logging/setLevel", {"level": "loud"}
    yield "resources/subscribe", {"uri": "failures://nowhere"}
    if revision == MODERN:
        for state in ("made-up", ""):
            yield "tools/call", {"name": "sure", "arguments": {}, "requestState": state}
        for answer in ({"action": "decline"}, {"action": "cancel"}):
            answers = {"elicit-1": answer}
            yield "tools/call", {"name": "sure", "arguments": {}, "inputResponses": answers}
            yield "tools/call", {"name": "sure_sync", "arguments": {}, "inputResponses": answers}
            yield "prompts/get", {"name": "p_sure", "inputResponses": answers}
            yield "resources/read", {"uri": "failures://sure", "inputResponses": answers}
        yield "subscriptions/listen", {}


def words(server: str, client: str, *arguments: str) -> list[Any]:
    """Each call with its answer; what differs by nature is named by what it is."""
    revision, capabilities, answer = CLIENTS[client]
    found = []
    with peer.Peer(server, *arguments) as process:
        if revision != MODERN:
            info = {"name": "test", "version": "1"}
            params = {"protocolVersion": revision, "capabilities": capabilities, "clientInfo": info}
            process.ask({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
            process.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        for number, (method, params) in enumerate(calls(revision), 1):
            meta = {
                "io.modelcontextprotocol/protocolVersion": revision,
                "io.modelcontextprotocol/clientCapabilities": capabilities,
            }
            sent = {**params, "_meta": meta} if revision == MODERN else params
            process.send({"jsonrpc": "2.0", "id": number, "method": method, "params": sent})
            while (frame := process.receive()).get("id") != number or "method" in frame:
                assert "id" in frame, frame
                process.send({"jsonrpc": "2.0", "id": frame["id"], "result": answer})
            found.append([method, params, plain(frame.get("error") or frame["result"])])
        assert process.end() == []
    return found


def plain(answer: Any) -> Any:
    answer.get("_meta", {}).pop("io.modelcontextprotocol/serverInfo", None)
    text = json.dumps(answer, ensure_ascii=False)
    text = re.sub(
        r"failed: (ValueError|RangeError|TypeError|failing_server::(?:Crash|Unsaid)) \(", "failed: <type> (", text
    )
    text = re.sub(r"\(reference [0-9a-f-]+\)", "(reference <id>)", text)
    text = re.sub(r'"requestState": "[^"]+"', '"requestState": "<state>"', text)
    # In Rust it is a method.
    text = text.replace("ctx.session()", "ctx.session").replace("ctx.principal()", "ctx.principal")
    # TypeScript's handlers have no return annotation, and so no structured content of texts.
    text = re.sub(r', "structuredContent": (\{"result": "kept"\}|"kept")', "", text)
    return json.loads(text)


@pytest.fixture(autouse=True)
def servers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "SERVERS", SERVERS)


# How errors are spelled before 2025-11-25 is the core's alone.
OLD = [client for client in CLIENTS if client < "2025-11-25"]


@pytest.mark.parametrize(
    ("server", "client"),
    [(server, client) for server in SERVERS for client in CLIENTS if server == "rust" or client not in OLD],
)
def test_the_words_are_the_same(server: str, client: str) -> None:
    said = words(server, client)
    known = json.loads(WORDS.read_text("utf-8")) if WORDS.exists() else {}
    if os.environ.get("WRITE_WORDS") and server == "rust":
        write({**known, client: said})
        return
    assert len(said) > 50
    for mine, theirs in zip(said, known[client], strict=True):
        assert mine == theirs


@pytest.mark.parametrize("client", ["2025-11-25 declining", "2026-07-28 asked"])
@pytest.mark.parametrize("server", SERVERS)
def test_middleware_that_passes_everything_on_changes_no_word(server: str, client: str) -> None:
    known = json.loads(WORDS.read_text("utf-8"))
    for mine, theirs in zip(words(server, client, "around"), known[client], strict=True):
        assert mine == theirs


def write(known: dict[str, list[Any]]) -> None:
    """A line for each call, so that a diff shows what changed."""
    clients = []
    for client, said in known.items():
        lines = ",\n".join(f"    {json.dumps(call, ensure_ascii=False)}" for call in said)
        clients.append(f"  {json.dumps(client)}: [\n{lines}\n  ]")
    Path(WORDS).write_text("{\n" + ",\n".join(clients) + "\n}\n", "utf-8")
