"""Checks of the facts that each step reports. A check yields the problems that it finds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

PLAN: dict[str, Any] = json.loads((Path(__file__).parent / "plan.json").read_text("utf-8"))
REPOSITORY = Path(__file__).parents[2]
BEST = {wanted["query"]: wanted["best"] for wanted in PLAN["searches"]}

Facts = dict[str, Any]

# The steps of one client's run, in order.
STEPS = [
    *("connect", "tools", "reindex"),
    *("search" for _ in PLAN["searches"]),
    *("outline", "unknown", "read", "outside", "prompt", "complete", "complete", "quick"),
]


def connect(facts: Facts, revision: str) -> Iterator[str]:
    if facts["revision"] != revision:
        yield f"asked for {revision}, speaking {facts['revision']}"
    if facts["server"] != "docsearch":
        yield f"the server calls itself {facts['server']!r}"


def tools(facts: Facts) -> Iterator[str]:
    if sorted(facts["names"]) != PLAN["tools"]:
        yield f"expected the tools {PLAN['tools']}, got {facts['names']}"


def reindex(facts: Facts) -> Iterator[str]:
    progress = facts["progress"]
    if not progress:
        yield "no progress was reported while indexing"
    elif progress != sorted(set(progress)) or progress[-1] != facts["files"]:
        yield f"progress must grow up to {facts['files']} files: {progress}"
    if facts["sections"] < facts["files"] or facts["files"] < 1:
        yield f"{facts['files']} files with {facts['sections']} sections cannot be"


def search(facts: Facts) -> Iterator[str]:
    hits = facts["hits"]
    if not 0 < len(hits) <= 5:
        yield f"{len(hits)} hits, expected 1 to 5"
        return
    if hits[0]["path"] != BEST[facts["query"]]:
        yield f"the best hit is {hits[0]['path']}, expected {BEST[facts['query']]}"
    scores = [hit["score"] for hit in hits]
    if scores != sorted(scores, reverse=True):
        yield f"hits must come best first: {scores}"
    for hit in hits:
        lines = (REPOSITORY / hit["path"]).read_text("utf-8").split("\n")
        if hit["title"] != hit["path"] and hit["title"] not in lines[hit["line"] - 1]:
            yield f"{hit['path']}:{hit['line']} is not where {hit['title']!r} stands"
        if not isinstance(hit["snippet"], str):
            yield f"{hit['path']}:{hit['line']} has no snippet"


def outline(facts: Facts) -> Iterator[str]:
    headings = facts["headings"]
    if not headings or headings[0]["level"] != 1:
        yield f"{facts['path']} must begin with a heading of level 1: {headings[:3]}"


def unknown(facts: Facts) -> Iterator[str]:
    if not facts["is_error"] or "nowhere.md" not in facts["text"]:
        yield f"an unknown document must be an error that names it: {facts['text']!r}"


def read(facts: Facts) -> Iterator[str]:
    if facts["text"] != (REPOSITORY / PLAN["document"]).read_text("utf-8"):
        yield f"{PLAN['document']} did not arrive as it is on disk"
    if facts["mime_type"] != "text/markdown":
        yield f"the type is {facts['mime_type']}, expected text/markdown"


def outside(facts: Facts, revision: str) -> Iterator[str]:
    """A path outside the folder must not be readable; the error code depends on the revision."""
    if "error" not in facts:
        yield f"{PLAN['outside']} was served: {facts['text'][:80]!r}"
    elif facts["code"] != (code := -32602 if revision >= "2026-07-28" else -32002):
        yield f"expected the code {code}, got {facts['code']}: {facts['error']}"


def prompt(facts: Facts) -> Iterator[str]:
    if facts["role"] != "user" or not facts["text"].endswith((REPOSITORY / PLAN["document"]).read_text("utf-8")):
        yield "the prompt must be the user's and end with the document"


def complete(facts: Facts) -> Iterator[str]:
    if PLAN["document"] not in facts["values"]:
        yield f"{PLAN['typed']!r} completes to {facts['values']}, without {PLAN['document']}"


def quick(facts: Facts) -> Iterator[str]:
    if len(facts["times"]) != PLAN["quick"]:
        yield f"{len(facts['times'])} of {PLAN['quick']} searches were answered"


CHECKS: dict[str, Callable[[Facts], Iterator[str]]] = {
    check.__name__: check for check in (tools, reindex, search, outline, unknown, read, prompt, complete, quick)
}


def wrong(facts: Facts, revision: str) -> list[str]:
    """Returns all problems of a step."""
    step = facts["step"]
    if "error" in facts and step != "outside":
        return [facts["error"]]
    try:
        if step in ("connect", "outside"):
            return list((connect if step == "connect" else outside)(facts, revision))
        return list(CHECKS[step](facts))
    except (KeyError, TypeError, IndexError, OSError) as error:
        return [f"the answer has the wrong shape ({type(error).__name__}: {error}): {facts}"]


def same_for_all(facts: Facts) -> dict[str, Any]:
    """Returns the facts of a step that must be equal for all servers, languages and revisions."""
    match facts:
        case {"step": "search", "query": query, "hits": [{"path": path}, *_]}:
            return {f"best hit for {query!r}": path}
        case {"step": "reindex", "files": files, "sections": sections}:
            return {"what was indexed": [files, sections]}
        case {"step": "outline", "headings": headings}:
            return {"outline": headings}
        case {"step": "unknown" | "prompt" as step, "text": text}:
            return {f"text of {step}": text}
        case {"step": "complete", "values": values}:
            return {"completion": values}
    return {}
