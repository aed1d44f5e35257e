"""A server that is mounted in an app under uvicorn leaves its lifespan, whatever signal ends the process."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gudgeon import Client

pytestmark = pytest.mark.io

HOST = """\
import asyncio, contextlib, os, socket, sys
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Mount
from gudgeon import Server

def note(text):
    with open(sys.argv[2], "a") as file:
        file.write(text + "\\n")

@contextlib.asynccontextmanager
async def lifespan(server):
    note(f"{server.name} entered")
    yield
    await asyncio.sleep(0.2)
    note(f"{server.name} left")

def shelf(name):
    app = Server(name, lifespan=lifespan)

    @app.tool
    async def wait(seconds: float) -> str:
        note("waiting")
        await asyncio.sleep(seconds)
        return "waited"

    return app

outer = Starlette(routes=[Mount("/a", shelf("a").asgi()), Mount("/b", shelf("b").asgi())])
listener = socket.socket(fileno=int(sys.argv[1]))
uvicorn.Server(uvicorn.Config(outer, log_level="warning")).run(sockets=[listener])
note("returned")
"""


class Hosted:
    def __init__(self, folder: Path) -> None:
        (folder / "host.py").write_text(HOST)
        self.notes = folder / "notes"
        self.notes.touch()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            fd = listener.fileno()
            command = [sys.executable, str(folder / "host.py"), str(fd), str(self.notes)]
            self.process = subprocess.Popen(command, pass_fds=[fd], cwd=folder)

    def noted(self) -> list[str]:
        return self.notes.read_text().splitlines()

    def end(self, number: int) -> int:
        os.kill(self.process.pid, number)
        return self.process.wait(60)


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    host = Hosted(tmp_path)
    yield host
    host.process.kill()
    host.process.wait()


async def call(url: str, seconds: float = 0) -> str:
    async with Client(url) as client:
        return (await client.call_tool("wait", {"seconds": seconds})).text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_lifespan_is_left(hosted: Hosted, number: int) -> None:
    async def use() -> None:
        for name in "ab":
            assert await call(f"{hosted.url}/{name}/") == "waited"

    asyncio.run(use())
    status = hosted.end(number)
    assert sorted(note for note in hosted.noted() if note != "waiting") == [
        "a entered",
        "a left",
        "b entered",
        "b left",
    ]
    if number == signal.SIGTERM:
        assert status == -signal.SIGTERM, "uvicorn ends as it would without the mount"


def test_a_call_under_way_is_answered_before(hosted: Hosted) -> None:
    async def use() -> str:
        calling = asyncio.ensure_future(call(f"{hosted.url}/a/", 0.5))
        while "waiting" not in hosted.noted():
            await asyncio.sleep(0.01)
        os.kill(hosted.process.pid, signal.SIGTERM)
        return await calling

    assert asyncio.run(use()) == "waited"
    assert hosted.process.wait(60) == -signal.SIGTERM
    assert hosted.noted() == ["a entered", "waiting", "a left"]


def test_a_host_that_was_never_used_ends_as_before(hosted: Hosted) -> None:
    with socket.create_connection(("127.0.0.1", int(hosted.url.rpartition(":")[2]))) as connection:
        connection.sendall(b"GET /elsewhere HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 404")
    assert hosted.end(signal.SIGTERM) == -signal.SIGTERM
    assert hosted.noted() == []
