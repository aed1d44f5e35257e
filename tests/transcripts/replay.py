"""Replays a transcript: the frames are equal as JSON, and nothing else comes."""

import json
from pathlib import Path
from typing import Any

from peer import HERE
from wires import WIRES, OverHttp

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


def header(lines: list[str], name: str) -> str:
    """Returns the value of a line `name: …`."""
    return next((line.removeprefix(f"{name}: ") for line in lines if line.startswith(f"{name}: ")), "")


def wires(path: Path) -> list[str]:
    """Returns the transports of a transcript."""
    return (header(path.read_text("utf-8").splitlines(), "wires") or "stdio").split(", ")


def options(lines: list[str]) -> list[str]:
    """Returns the options of the server that a transcript is held with."""
    given = []
    for name in ("dialects", "limit"):
        if value := header(lines, name):
            given += [f"--{name}", value]
    if header(lines, "middleware"):
        given.append("--around")
    return given


def replay(path: Path, wire: str, server: str) -> None:
    """Replays a transcript over a transport to a server."""
    lines = path.read_text("utf-8").splitlines()
    state = ""
    peer = WIRES[wire](server, options(lines))
    try:
        if given := header(lines, "header"):
            assert isinstance(peer, OverHttp)
            name, _, value = given.partition(": ")
            peer.header = (name, value)
        expected: list[Any] = []
        for number, line in enumerate(lines, 1):
            if line.startswith("> "):
                peer.send(line[2:].replace("<state>", state).encode())
            elif line.startswith("< "):
                expected.append(json.loads(line[2:]))
                if wire == "http" and lines[number : number + 1] and lines[number].startswith("< "):
                    continue  # Streams know no order among each other.
                while expected:
                    actual = peer.receive()
                    if isinstance(actual, dict) and isinstance(actual.get("result"), dict):
                        state = actual["result"].get("requestState", state)
                    found = [at for at, frame in enumerate(expected) if equal(frame, actual)]
                    where = f"line {number}, expected\n{expected}\ngot\n{json.dumps(actual, ensure_ascii=False)}"
                    assert found, where
                    del expected[found[0]]
            elif line.startswith("~ restart"):
                peer.close()
                peer.kill()
                peer = WIRES[wire](server, options(lines))
            else:
                assert not line.startswith("~"), f"what is meant by {line}?"
        peer.close()
    finally:
        peer.kill()
