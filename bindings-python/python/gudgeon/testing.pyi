from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from os import PathLike
from typing import Any

from . import Client, Server, SyncClient
from .types import LogMessage, Principal

ERAS: tuple[str, ...]  # every revision

class Faults:
    seed: int
    drop: float
    duplicate: float
    restart_between_rounds: bool
    def __init__(
        self, *, seed: int = 0, drop: float = 0, duplicate: float = 0, restart_between_rounds: bool = False
    ) -> None: ...

class Recorder:
    path: str | PathLike[str]
    def __init__(self, path: str | PathLike[str]) -> None: ...

def connect(
    server: Server[Any],
    *,
    revision: str = ...,
    answers: Mapping[str, Any] | None = None,
    principal: Principal | None = None,
    headers: Mapping[str, str] | None = None,
    on_log: Callable[[LogMessage], Any] | None = None,
    replay: bool = False,
    faults: Faults | None = None,
    recorder: Recorder | None = None,
) -> AbstractAsyncContextManager[Client]: ...
def connect_sync(
    server: Server[Any],
    *,
    revision: str = ...,
    answers: Mapping[str, Any] | None = None,
    principal: Principal | None = None,
    headers: Mapping[str, str] | None = None,
    on_log: Callable[[LogMessage], Any] | None = None,
    replay: bool = False,
    faults: Faults | None = None,
    recorder: Recorder | None = None,
) -> AbstractContextManager[SyncClient]: ...
