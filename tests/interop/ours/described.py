"""Shared code of both Python clients here: the server's questions, and results in the terms that the suites expect."""

import json
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))
from jobs import perform_all as perform_all, print_line

from gudgeon import Cancelled, Declined
from gudgeon.types import Image, ResourceLink, Root, SampleResult

ANSWERS = json.loads((Path(__file__).resolve().parents[1] / "answers.json").read_text())


def revision_of(job):
    return "2025-11-25" if job["era"] == "legacy" else job["era"]


def on_elicit(request):
    answer = ANSWERS["forms"][request.message]
    return {"accept": answer.get("content", {}), "decline": Declined(), "cancel": Cancelled()}[answer["action"]]


def on_sample(request):
    if request.tools:
        return SampleResult.from_dict(ANSWERS["tool_use"])
    return SampleResult(ANSWERS["sample"]["content"]["text"], model=ANSWERS["sample"]["model"])


ANSWERING = {
    "on_elicit": on_elicit,
    "on_sample": on_sample,
    "roots": [Root(root["uri"], name=root["name"]) for root in ANSWERS["roots"]["roots"]],
}


def describe(result, progress, logs):
    return {
        "is_error": result.is_error,
        "structured": result.structured_content,
        "data": result.data,
        "types": [block.type for block in result.content],
        "text": result.text,
        "image": next(
            ([block.mime_type, len(block.data)] for block in result.content if isinstance(block, Image)), None
        ),
        "links": [block.uri for block in result.content if isinstance(block, ResourceLink)],
        "progress": progress,
        "logs": list(logs),
    }


def step_done(step, got):
    print_line({"check": step["check"], "got": got})


def failure(error):
    return {"code": getattr(error, "code", None), "error": f"{type(error).__name__}: {error}"}
