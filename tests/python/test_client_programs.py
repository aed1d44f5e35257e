"""Programs that use clients: Ctrl-C, the end of the interpreter, forks, and imports."""

import os
import re
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.io

FAKE = str(Path(__file__).with_name("fake_server.py"))


def run(code, *, interrupt_when=None, timeout=60):
    """Runs a program of its own; optionally Ctrl-C is pressed once a condition holds."""
    program = re.sub(r"\bFAKE\b", lambda _: repr(FAKE), textwrap.dedent(code))
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=_environment()
    )
    if interrupt_when is not None:
        deadline = time.monotonic() + 60
        while not interrupt_when():
            assert time.monotonic() < deadline, "the program does not come so far"
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=timeout)
    return process.returncode, out, err


def _environment():
    import gudgeon

    folder = str(Path(gudgeon.__file__).parent.parent)
    return {**os.environ, "PYTHONPATH": folder}


def test_ctrl_c_ends_a_blocking_call(tmp_path):
    received = tmp_path / "received"
    code, out, err = run(
        f"""
        import sys
        from gudgeon import Command, SyncClient
        with SyncClient(Command(sys.executable, FAKE, "legacy", env={{"FAKE_LOG": {str(received)!r}}})) as client:
            try:
                client.call_tool("slow")
            except KeyboardInterrupt:
                print("interrupted", client.call_tool("count").text)
        """,
        interrupt_when=lambda: received.exists() and '"slow"' in received.read_text(),
    )
    assert out.split() == ["interrupted", "1"] and code == 0, err


def test_an_interpreter_that_ends_leaves_nothing_behind(tmp_path):
    code, out, err = run(
        f"""
        import pathlib, sys, threading, time
        from gudgeon import Command, SyncClient
        received = pathlib.Path({str(tmp_path / "received")!r})
        client = SyncClient(Command(sys.executable, FAKE, "legacy", env={{"FAKE_LOG": str(received)}})).connect()
        def call():
            try:
                client.call_tool("slow")
            except Exception:
                pass
        threading.Thread(target=call, daemon=True).start()
        while '"slow"' not in received.read_text():
            time.sleep(0.01)
        print(client.server.name)
        """
    )
    assert (code, out.strip(), err) == (0, "fake", "")


def test_a_fork_makes_clients_of_its_own():
    code, out, err = run(
        """
        import os, sys
        from gudgeon import SyncClient
        command = [sys.executable, FAKE, "legacy"]
        with SyncClient(command) as client:
            client.call_tool("echo", {})
            pid = os.fork()
            if pid == 0:
                try:
                    client.list_tools()
                except ValueError as error:
                    print("forked" in str(error), flush=True)
                with SyncClient(command) as own:
                    print(own.call_tool("echo", {"child": 1}).text, flush=True)
                sys.exit(0)
            print(os.waitpid(pid, 0)[1], client.call_tool("echo", {"parent": 1}).text)
        """
    )
    assert out.split("\n")[:3] == ["True", '{"child": 1}', '0 {"parent": 1}'] and code == 0, err


def test_importing_and_constructing_starts_no_thread():
    code, out, err = run(
        """
        import os, sys
        from gudgeon import Client, SyncClient
        Client(["a"]); SyncClient(["a"])
        print(len(os.listdir("/proc/self/task")), "asyncio" in sys.modules)
        """
    )
    assert out.split() == ["1", "False"], err
