"""The start and the end of a server process."""

import os
import signal
import subprocess
import sys
import time

import pytest
from ports import reserve_port

from serverproc import ServerProcess

pytestmark = pytest.mark.io

ECHO = """
    @app.tool
    def echo(text: str) -> str:
        return text
"""


def test_nothing_printed_reaches_the_wire() -> None:
    source = """
        import subprocess

        @app.tool
        def noisy() -> str:
            print("printed")
            sys.stdout.write("written\\n")
            os.write(1, b"raw\\n")
            subprocess.run(["sh", "-c", "echo child; cat"], check=True)
            return "quiet"
    """
    with ServerProcess("print('before')" + "\n" + __import__("textwrap").dedent(source)) as server:
        assert server.text("noisy") == "quiet"
        server.close_input()
        assert server.wait() == 0
        assert {"before", "printed", "written", "raw", "child"} <= set(server.stderr.split())


def test_a_server_with_async_handlers_answers_before_asyncio_is_imported() -> None:
    source = """
        gate = threading.Event()

        class Gate:
            def find_spec(self, name, path=None, target=None):
                if name == "asyncio":
                    gate.wait()

        @app.tool
        def open_gate() -> str:
            gate.set()
            return "open"

        @app.tool
        async def echo(text: str) -> str:
            return text

        for name in list(sys.modules):
            if name.partition(".")[0] == "asyncio":
                del sys.modules[name]
        sys.meta_path.insert(0, Gate())
    """
    with ServerProcess(source) as server:
        assert server.text("open_gate") == "open"
        assert server.text("echo", text="late") == "late"
        server.close_input()
        assert server.wait() == 0


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_at_the_end_of_input_calls_in_flight_are_finished(kind: str) -> None:
    source = """
        @app.tool
        def slow() -> str:
            time.sleep(0.3)
            return "done"

        @app.tool
        async def slow_async() -> str:
            await asyncio.sleep(0.3)
            return "done"

        # Generous, because machines are busy.
        app.run(shutdown_grace=60)
    """
    with ServerProcess(source) as server:
        id = server.start_tool("slow" if kind == "def" else "slow_async")
        server.close_input()
        assert server.wait() == 0
        assert server.reply(id)["result"]["content"][0]["text"] == "done"


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_at_the_end_of_input_pending_questions_fail(kind: str) -> None:
    source = """
        @app.tool
        def sure(ctx: SyncContext) -> str:
            return "yes" if ctx.elicit("Sure?", bool) else "no"

        @app.tool
        async def sure_async(ctx: Context) -> str:
            return "yes" if await ctx.elicit("Sure?", bool) else "no"

        # Generous, because machines are busy.
        app.run(shutdown_grace=60)
    """
    with ServerProcess(source, capabilities={"elicitation": {}}) as server:
        id = server.start_tool("sure" if kind == "def" else "sure_async")
        server.until("elicitation/create")
        server.close_input()
        assert server.wait() == 0
        result = server.reply(id)["result"]
        assert result["isError"] and result["content"][0]["text"] == (
            "the client disconnected: this question gets no answer"
        )


@pytest.mark.parametrize("how", ["close_input", "terminate", "interrupt"])
@pytest.mark.parametrize("is_async", [False, True])
def test_the_end_runs_the_hooks_and_exits_with_0_although_threads_and_timers_live_on(how: str, is_async: bool) -> None:
    source = """
        import atexit
        from contextlib import asynccontextmanager, contextmanager

        atexit.register(lambda: print("atexit ran", file=sys.stderr))

        @app.tool
        def ping() -> str:
            threading.Thread(target=lambda: time.sleep(600)).start()
            threading.Timer(600, print).start()
            return "pong"
    """
    sync = """
        @contextmanager
        def life(server):
            yield 7
            print("lifespan left", file=sys.stderr)
    """
    asynchronous = """
        @asynccontextmanager
        async def life(server):
            yield 7
            print("lifespan left", file=sys.stderr)
    """
    source += asynchronous if is_async else sync
    source += """
        from gudgeon._server.lifespan import Lifespan
        app._lifespan = Lifespan(app, life)

        @app.tool
        def life_value(ctx: SyncContext) -> int:
            return ctx.lifespan
    """
    with ServerProcess(source) as server:
        assert server.text("ping") == "pong"
        assert server.tool("life_value")["structuredContent"]["result"] == 7
        getattr(server, how)()
        assert server.wait() == 0
        assert server.stderr.split("\n")[:2] == ["lifespan left", "atexit ran"]
        assert "Traceback" not in server.stderr


@pytest.mark.parametrize("is_async", [False, True])
def test_a_second_interrupt_is_hard(is_async: bool) -> None:
    stubborn = """
        @app.tool
        async def stubborn() -> str:
            print("in it", file=sys.stderr, flush=True)
            while True:
                try:
                    await asyncio.sleep(600)
                except asyncio.CancelledError:
                    pass

        app.run(shutdown_grace=300)
    """
    busy = """
        @app.tool
        def stubborn() -> str:
            print("in it", file=sys.stderr, flush=True)
            time.sleep(600)
            return ""

        app.run(shutdown_grace=300)
    """
    with ServerProcess(stubborn if is_async else busy) as server:
        server.start_tool("stubborn")
        while "in it" not in server.stderr:
            time.sleep(0.01)
        server.interrupt()
        time.sleep(0.5)
        assert server.process.poll() is None
        # Those that a busy process has not handled yet are delivered as one. The grace ends long after this.
        end = time.monotonic() + 60
        while server.process.poll() is None and time.monotonic() < end:
            server.interrupt()
            time.sleep(0.05)
        assert server.wait() == 130
        assert "Traceback" not in server.stderr


def test_a_handler_that_does_not_come_back_does_not_keep_the_process() -> None:
    source = """
        @app.tool
        def stuck() -> str:
            time.sleep(600)
            return ""
    """
    with ServerProcess(source) as server:
        id = server.start_tool("stuck")
        server.close_input()
        assert server.wait(60) == 0
        assert all(frame.get("id") != id for frame in server.seen)


@pytest.mark.parametrize("seconds", [0.3, 600])
def test_an_interpreter_that_exits_while_handlers_run_ends_cleanly(seconds: float) -> None:
    source = f"""
import socket, sys, time
from gudgeon import Server
from gudgeon._serving.in_memory import Served

app = Server("t")
begun = []

@app.tool
def slow() -> str:
    begun.append(1)
    time.sleep({seconds})
    return "done"

ours, theirs = socket.socketpair()
Served(app).start_thread(theirs.fileno())
ours.sendall(b'{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}},"clientInfo":{{"name":"t","version":"1"}}}}}}\\n')
ours.recv(9999)
for id in range(2, 8):
    ours.sendall(b'{{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{{"name":"slow"}}}}\\n' % id)
while len(begun) < 2:
    time.sleep(0.005)
print("leaving")
"""
    for _ in range(3 if seconds < 1 else 1):
        done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (0, "leaving\n", "")


def test_code_after_run_still_runs_and_its_status_counts() -> None:
    with ServerProcess(ECHO + "\n    app.run()\n    print('after', file=sys.stderr)\n    sys.exit(7)") as server:
        assert server.text("echo", text="x") == "x"
        server.close_input()
        assert server.wait() == 7
        assert "after" in server.stderr


def test_importing_gudgeon_loads_nothing() -> None:
    code = "import sys; old = set(sys.modules); import gudgeon; print(*sorted(set(sys.modules) - old))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["gudgeon"]


def test_a_server_with_def_handlers_only_imports_no_module_that_it_does_not_need() -> None:
    source = """
        @app.tool
        def loaded() -> list[str]:
            return [name for name in ("asyncio", "pathlib", "pydantic") if name in sys.modules]
    """
    head = "for name in list(sys.modules):\n    if name.startswith('asyncio'):\n        del sys.modules[name]\n"
    with ServerProcess(head + __import__("textwrap").dedent(source)) as server:
        assert server.tool("loaded")["structuredContent"]["result"] == []


def test_large_replies_are_written_as_they_come_and_not_piled_up() -> None:
    # The peak of this process alone: the value of `getrusage` begins with the parent's.
    source = """
        @app.tool
        def large() -> str:
            return "x" * 100_000

        @app.tool
        def size() -> int:
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    """
    # Each thread that ran keeps some memory for its next large reply.
    with ServerProcess(source, options=", threads=2") as server:
        before = server.tool("size")["structuredContent"]["result"]
        for id in [server.start_tool("large") for _ in range(400)]:
            server.reply(id)
        after = server.tool("size")["structuredContent"]["result"]
        assert after - before < 60_000


@pytest.mark.parametrize("at", ["", "'http://127.0.0.1:0/mcp'"])
def test_run_in_an_event_loop_names_what_to_write_instead(at: str) -> None:
    source = f"""
import asyncio
from gudgeon import Server

app = Server("t")

async def main() -> None:
    app.run({at})

try:
    asyncio.run(main())
except RuntimeError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-W", "error", "-c", source], capture_output=True, text=True, timeout=60)
    assert f"await app.serve({at})" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_run_on_another_thread_serves_until_the_process_ends(kind: str) -> None:
    source = f"""
import sys, threading, time
from gudgeon import Server, SyncClient
from gudgeon.errors import ConnectFailed

app = Server("t")

@app.tool
{kind} ready() -> str:
    return "ready"

url = "http://127.0.0.1:{reserve_port()}/mcp"
threading.Thread(target=app.run, args=(url,), daemon=True).start()
while True:
    try:
        with SyncClient(url) as client:
            print(client.call_tool("ready").data)
        sys.exit(7)
    except ConnectFailed:
        time.sleep(0.05)
"""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (7, "ready\n"), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
def test_a_process_that_a_handler_forks_can_be_terminated() -> None:
    source = """
        import signal

        @app.tool
        def forks() -> int:
            ready, is_ready = os.pipe()
            child = os.fork()
            if child == 0:
                os.write(is_ready, b"x")
                time.sleep(600)
                os._exit(0)
            os.read(ready, 1)
            os.kill(child, signal.SIGTERM)
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    """
    with ServerProcess(source) as server:
        assert server.text("forks") == str(-signal.SIGTERM)
