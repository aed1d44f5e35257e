"""Tasks of trio get an error that says what to use. A stand-in has the part of trio that is looked at."""

from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from gudgeon import Client, Server, SyncClient


@pytest.fixture
def in_trio(monkeypatch: pytest.MonkeyPatch) -> None:
    trio: Any = ModuleType("trio")
    trio.lowlevel = SimpleNamespace(current_task=object)
    monkeypatch.setitem(__import__("sys").modules, "trio", trio)


def run(coroutine: Any) -> None:
    """Runs a coroutine up to its first step, as trio would."""
    try:
        coroutine.send(None)
    finally:
        coroutine.close()


async def listen(app: Server[Any]) -> None:
    async with app.listen("http://127.0.0.1:0/mcp"):
        pass


async def never(*_: Any) -> Any:
    raise AssertionError


@pytest.mark.io
@pytest.mark.usefixtures("in_trio")
def test_the_error_names_asyncio_and_the_blocking_client() -> None:
    app: Server[Any] = Server("shelf")
    with pytest.raises(
        RuntimeError, match=r"Client needs asyncio, and this task runs on trio: .*asyncio.run.*SyncClient"
    ):
        run(Client(app).connect())
    with pytest.raises(RuntimeError, match="Client needs asyncio"):
        run(Client(["a"]).__aenter__())
    for serve in (
        lambda: app.serve("http://127.0.0.1:0/mcp"),
        lambda: listen(app),
        lambda: app.asgi()({"type": "http"}, never, never),
    ):
        with pytest.raises(RuntimeError, match=r"the server needs asyncio, and this task runs on trio: .*app.run"):
            run(serve())


@pytest.mark.usefixtures("in_trio")
def test_the_blocking_client_works() -> None:
    with SyncClient(Server("shelf")) as client:
        assert client.server.name == "shelf"


def test_without_any_loop_the_error_is_that_of_asyncio() -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        run(Client(["a"]).connect())
