"""A handler of the log that blocks: requests of other threads go on, what waits is bounded, and losses are counted
once the handler returns. The rule holds for each way in which a server is reached.
"""

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from eventually import eventually
from gudgeon import Command, McpError, SyncClient

pytestmark = pytest.mark.io

#: Events that wait for the log, at most.
WAITING = 1_000
PROGRAM = """
    import logging, os, sys, time
    from gudgeon import Server

    class Gate(logging.Handler):
        "Blocks until the file `open` exists, and then writes records to the file `log`."
        def emit(self, record):
            open(FOLDER + "/blocks", "w").close()
            while not os.path.exists(FOLDER + "/open"):
                time.sleep(0.005)
            with open(FOLDER + "/log", "a") as log:
                log.write(record.getMessage().replace(chr(10), " ") + chr(10))

    FOLDER = sys.argv[1]
    logging.getLogger("gudgeon").setLevel(logging.DEBUG)
    logging.getLogger("gudgeon").addHandler(Gate())
    app = Server("shelf")

    @app.tool
    def blocking() -> str:
        return "open"

    @app.tool
    async def waiting() -> str:
        return "open"

    @app.tool
    def crash() -> None:
        raise ValueError("no row")

    @app.tool
    async def crash_in_loop() -> None:
        raise ValueError("no row")
"""
HOSTS = {
    "stdio": "app.run()",
    "http": "app.run('http://127.0.0.1:0/mcp')",
    "asgi": """
    import socket, uvicorn
    # With its protocol, without which asyncio does not set TCP_NODELAY.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)
    uvicorn.Server(uvicorn.Config(app.asgi(), log_level="critical")).run([listener])
    """,
}


@contextmanager
def served(host: str, folder: Path) -> Iterator[Callable[[], SyncClient]]:
    """Starts a server whose log is blocked. Yields a function that connects to it."""
    program = textwrap.dedent(PROGRAM) + textwrap.dedent(HOSTS[host])
    if host == "stdio":
        yield lambda: SyncClient(Command(sys.executable, "-c", program, str(folder)))
        return
    server = subprocess.Popen([sys.executable, "-c", program, str(folder)], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        url = next(line.strip() for line in server.stderr if line.startswith("http://"))
        yield lambda: SyncClient(url)
    finally:
        server.kill()
        server.communicate()


def reject(client: SyncClient) -> None:
    """Causes an event of the core, which a thread of its own logs."""
    with pytest.raises(McpError):
        client.call_tool("nil")


@pytest.mark.parametrize("host", HOSTS)
def test_requests_go_on_while_a_handler_of_the_log_blocks(host: str, tmp_path: Path) -> None:
    with served(host, tmp_path) as connect, connect() as client:
        reject(client)
        eventually((tmp_path / "blocks").exists)
        # The thread that reports an error of a handler may block as well, and no other one.
        crashing = [threading.Thread(target=crash, args=[client], daemon=True) for _ in range(5)]
        for thread in crashing:
            thread.start()
        for _ in range(WAITING + 300):
            reject(client)
        assert [client.call_tool(name).text for name in ("blocking", "waiting")] == ["open", "open"]
        assert len(client.list_tools()) == 4
        (tmp_path / "open").touch()
        for thread in crashing:
            thread.join(60)
            assert not thread.is_alive()
        log = tmp_path / "log"
        eventually(lambda: log.exists() and "log messages were dropped" in log.read_text())
        lines = log.read_text().splitlines()
        assert 300 <= len(lines) <= WAITING + 10
        assert sum("crash" in line for line in lines) >= 1


def test_an_event_loop_that_a_handler_of_the_log_blocks_stops_async_handlers_only(tmp_path: Path) -> None:
    with served("http", tmp_path) as connect, connect() as client, connect() as other:
        failing = threading.Thread(target=crash, args=[client, "crash_in_loop"], daemon=True)
        failing.start()
        eventually((tmp_path / "blocks").exists)
        late = threading.Thread(target=other.call_tool, args=["waiting"], daemon=True)
        late.start()
        with connect() as third:
            assert [third.call_tool("blocking").text for _ in range(10)] == ["open"] * 10
            assert len(third.list_tools()) == 4
            reject(third)
        (tmp_path / "open").touch()
        for thread in (failing, late):
            thread.join(60)
            assert not thread.is_alive()


def crash(client: Any, tool: str = "crash") -> None:
    assert client.call_tool(tool, raise_on_error=False).is_error
