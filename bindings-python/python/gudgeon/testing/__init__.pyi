from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from .. import Client, Server, SyncClient
from .._testing.faults import Faults as Faults, Recorder as Recorder
from ..types import LogMessage, Principal, Store

__all__ = ["ERAS", "Faults", "Recorder", "check_store", "connect", "connect_sync"]

ERAS: tuple[str, ...]  # every revision

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
    **client_options: Any,
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
    **client_options: Any,
) -> AbstractContextManager[SyncClient]: ...
async def check_store(store: Store) -> None: ...
