"""Every transcript against the fixture server in Rust, over each of its transports.

Those that have no stream, which the bindings replay in memory, are replayed to all servers.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from peer import HERE
from replay import FILES, replay, wires

pytestmark = pytest.mark.io


def runs(path: Path) -> Iterator[tuple[str, str]]:
    """Yields transports and servers; none for a transcript in which time passes."""
    if "\n~ idle" in path.read_text("utf-8"):
        return
    for wire in wires(path):
        yield wire, "rust"
    if "stdio" not in wires(path):
        for server in ("python", "node"):
            yield wires(path)[0], server


CASES: list[Any] = [
    pytest.param(path, wire, server, id=f"{path.relative_to(HERE)}-{wire}-{server}")
    for path in FILES
    for wire, server in runs(path)
]


@pytest.mark.parametrize(("path", "wire", "server"), CASES)
def test_transcript(path: Path, wire: str, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GUDGEON_STATE_KEYS", "the key of every fixture which is long")
    replay(path, wire, server)


def test_the_transcripts_are_there() -> None:
    assert len(CASES) > len(FILES)
