"""For tests that users write: a client in memory, pinned to one revision, that answers questions and keeps a record."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from os import PathLike
from typing import Any

from . import Client, Server, SyncClient

ERAS: tuple[str, ...]  # every revision

class Faults:
    """Makes the wire bad, the same way each time: messages in either direction get lost or come twice."""

    seed: int
    drop: float
    duplicate: float
    restart_between_rounds: bool
    def __init__(
        self, *, seed: int = 0, drop: float = 0, duplicate: float = 0, restart_between_rounds: bool = False
    ) -> None: ...

class Recorder:
    """Writes what is said as a transcript: `> ` before what the client says, `< ` before what the server says."""

    path: str | PathLike[str]
    def __init__(self, path: str | PathLike[str]) -> None: ...

def connect(
    server: Server[Any],
    /,
    *,
    era: str = ...,
    answers: Mapping[str, Any] | None = None,
    replay: bool = False,
    faults: Faults | None = None,
    recorder: Recorder | None = None,
) -> AbstractAsyncContextManager[Client]:
    """A `Client` of this server, in memory: `async with connect(app, answers={"Sure?": True}) as client: …`"""

def connect_sync(
    server: Server[Any],
    /,
    *,
    era: str = ...,
    answers: Mapping[str, Any] | None = None,
    replay: bool = False,
    faults: Faults | None = None,
    recorder: Recorder | None = None,
) -> AbstractContextManager[SyncClient]:
    """A `SyncClient` of this server, in memory: `with connect_sync(app) as client: …`"""
