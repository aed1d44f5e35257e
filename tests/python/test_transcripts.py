"""Every transcript against the fixture servers as processes: the frames are equal as JSON, and nothing else comes."""

import json
from pathlib import Path
from typing import Any

import pytest
from peer import HERE, Peer

FILES = sorted(HERE.rglob("*.txt"))


def equal(expected: Any, actual: Any) -> bool:
    """As JSON: 1 is neither true nor 1.0. The texts `<any>` and `<state>` stand for any text."""
    if type(expected) is not type(actual):
        return False
    if isinstance(expected, dict):
        return expected.keys() == actual.keys() and all(equal(expected[key], actual[key]) for key in expected)
    if isinstance(expected, list):
        return len(expected) == len(actual) and all(map(equal, expected, actual))
    return expected == actual or expected in ("<any>", "<state>")


def dialects(lines: list[str]) -> list[str]:
    """A line `dialects: …` names those that the server speaks."""
    return next(
        (["--dialects", line.removeprefix("dialects: ")] for line in lines if line.startswith("dialects: ")), []
    )


@pytest.mark.parametrize("server", ["python", "rust"])
@pytest.mark.parametrize("path", FILES, ids=lambda it: str(it.relative_to(HERE)))
def test_transcript(server: str, path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    state = ""
    with Peer(server, *dialects(lines)) as peer:
        for number, line in enumerate(lines, 1):
            if line.startswith("> "):
                peer.send(line[2:].replace("<state>", state).encode())
            elif line.startswith("< "):
                actual = peer.receive()
                if isinstance(actual, dict) and isinstance(actual.get("result"), dict):
                    state = actual["result"].get("requestState", state)
                where = f"line {number}, expected\n{line[2:]}\ngot\n{json.dumps(actual, ensure_ascii=False)}"
                assert equal(json.loads(line[2:]), actual), where
        assert peer.end() == []


def test_the_transcripts_are_there() -> None:
    assert len(FILES) > 20


def test_frames_are_compared_strictly() -> None:
    assert equal({"a": "<any>", "b": [1]}, {"b": [1], "a": "x"})
    for expected, actual in [(1, True), (1, 1.0), ({}, {"a": 1}), ([1], [1, 1]), ("<any>", 1), ("x", "<any>")]:
        assert not equal(expected, actual)
