"""Every transcript against the fixture server in memory."""

from pathlib import Path

import pytest
from peer import HERE
from replay import FILES, equal, replay, wires

STREAMS = [path for path in FILES if "stdio" in wires(path)]


@pytest.mark.parametrize("path", STREAMS, ids=lambda path: str(path.relative_to(HERE)))
def test_transcript(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUDGEON_STATE_KEYS", "the key of every fixture which is long")
    replay(path, "memory", "python")


def test_the_transcripts_are_there() -> None:
    assert len(STREAMS) > 20


def test_frames_are_compared_strictly() -> None:
    assert equal({"a": "<any>", "b": [1]}, {"b": [1], "a": "x"})
    for expected, actual in [(1, True), (1, 1.0), ({}, {"a": 1}), ([1], [1, 1]), ("<any>", 1), ("x", "<any>")]:
        assert not equal(expected, actual)
