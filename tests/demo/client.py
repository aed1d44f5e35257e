"""The demo client in Python: `client.py --revision R -- <server command…>`.

Prints the results as JSON lines, one per step; run.py checks them.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gudgeon import McpError, SyncClient

PLAN: dict[str, Any] = json.loads((Path(__file__).parent / "plan.json").read_text("utf-8"))


@contextmanager
def step(name: str, calls: int = 1) -> Iterator[dict[str, Any]]:
    """Times a step and prints the facts that its body collects; an error is a fact too and does not end the run."""
    facts: dict[str, Any] = {}
    start = time.perf_counter()
    try:
        yield facts
    except McpError as error:
        facts.update(error=f"{type(error).__name__}: {error}", code=error.code)
    milliseconds = (time.perf_counter() - start) * 1000
    print(json.dumps({"step": name, "calls": calls, "ms": milliseconds, **facts}), flush=True)


def main(revision: Any, command: list[str]) -> None:
    client = SyncClient(command, revision=revision, timeout=30)
    with step("connect", calls=0) as facts:
        client.connect()
        facts["revision"] = client.revision
        facts["server"] = client.server.name
    if "error" in facts:
        sys.exit(1)
    try:
        run(client)
    finally:
        client.close()


def run(client: SyncClient) -> None:
    document = PLAN["document"]

    with step("tools") as facts:
        facts["names"] = [tool.name for tool in client.list_tools()]

    with step("reindex") as facts:
        progress: list[float] = []
        result = client.call_tool("reindex", on_progress=lambda report: progress.append(report.progress))
        facts.update(result.data, progress=progress)

    for wanted in PLAN["searches"]:
        with step("search") as facts:
            facts["query"] = wanted["query"]
            facts.update(client.call_tool("search", {"query": wanted["query"], "limit": 5}).data)

    with step("outline") as facts:
        facts.update(client.call_tool("outline", {"path": document}).data)

    with step("unknown") as facts:
        result = client.call_tool("outline", {"path": "nowhere.md"}, raise_on_error=False)
        facts.update(is_error=result.is_error, text=result.text)

    with step("read") as facts:
        contents = client.read_resource(f"docs://{document}").contents[0]
        facts.update(mime_type=contents.mime_type, text=contents.text)

    with step("outside") as facts:  # must fail; run.py checks the error
        facts["text"] = client.read_resource(PLAN["outside"]).text

    with step("prompt") as facts:
        message = client.get_prompt("summarize", {"path": document}).messages[0]
        facts.update(role=message.role, text=message.text)

    for target in ("summarize", "docs://{+path}"):
        with step("complete") as facts:
            facts["values"] = list(client.complete(target, "path", PLAN["typed"]).values)

    with step("quick", calls=PLAN["quick"]) as facts:
        query = PLAN["searches"][0]["query"]
        times: list[float] = []
        for _ in range(PLAN["quick"]):
            start = time.perf_counter()
            client.call_tool("search", {"query": query, "limit": 1})
            times.append((time.perf_counter() - start) * 1000)
        facts["times"] = times


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[4:])
