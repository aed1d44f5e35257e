"""A thread that loads the package and ends: what was made ready in it must outlive it."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.io

PROGRAM = """
import threading

def use():
    from gudgeon import Server, SyncClient
    app = Server("t")
    @app.tool
    def echo(text: str) -> str:
        return text

    with SyncClient(app) as client:
        print(client.call_tool("echo", {"text": "served"}).text)

for _ in range(3):
    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
use()
"""


def test_others_serve_when_the_thread_that_loaded_the_package_has_ended() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "served\n" * 4), done.stderr
