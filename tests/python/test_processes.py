"""Servers and clients in processes that fork, end, or are shared with other interpreters."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.io

HEAD = """
import asyncio, os, sys, threading, time
from gudgeon import Client, Server, SyncClient

app = Server("t")

@app.tool
def add(a: int, b: int) -> int:
    return a + b

@app.tool
async def aadd(a: int, b: int) -> int:
    return a + b

def use() -> int:
    with SyncClient(app) as client:
        return client.call_tool("add", {"a": 1, "b": 2}).data + client.call_tool("aadd", {"a": 1, "b": 2}).data
"""


def run(*sources: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    program = HEAD + "".join(textwrap.dedent(source) for source in sources)
    return subprocess.run(
        [sys.executable, *options, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )


forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")

LISTENS = """
    async def main() -> None:
        async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url) as client:
            await client.call_tool("add", {"a": 1, "b": 2})
            fork()

    asyncio.run(main())
"""
IN_MEMORY = """
    with SyncClient(app) as client:
        client.call_tool("add", {"a": 1, "b": 2})
        fork()
"""


@forks
def test_a_child_of_a_process_that_serves_ends_at_once_with_its_own_status() -> None:
    done = run(
        """
        def fork() -> None:
            for _ in range(9):
                start = time.monotonic()
                child = os.fork()
                if child == 0:
                    sys.exit(7)
                print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), time.monotonic() - start)
        """,
        IN_MEMORY,
    )
    assert done.returncode == 0, done.stderr
    statuses, durations = zip(*(line.split() for line in done.stdout.splitlines()), strict=True)
    assert set(statuses) == {"7"} and len(durations) == 9
    # A child that waited for its parent's threads would take 3 s each time; a busy machine delays some.
    assert sorted(map(float, durations))[4] < 2, durations


@forks
@pytest.mark.parametrize("serving", [IN_MEMORY, LISTENS], ids=["in memory", "http"])
def test_a_child_of_a_process_that_serves_serves_on_its_own(serving: str) -> None:
    done = run(
        """
        def fork() -> None:
            child = os.fork()
            if child == 0:
                worker = threading.Thread(target=lambda: print(use(), flush=True))
                worker.start()
                worker.join()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
        """,
        serving,
        "print(use())",
    )
    assert (done.returncode, done.stdout) == (0, "6\n6\n"), done.stderr


@forks
@pytest.mark.parametrize("kind", ["def", "async def"])
@pytest.mark.parametrize(
    ("end", "status"), [("sys.exit(5)", 5), ("return -1", 0), ("raise ValueError('in the child')", 1)]
)
def test_a_process_that_a_handler_forks_ends_with_the_handler(kind: str, end: str, status: int) -> None:
    done = run(
        f"""
        @app.tool
        {kind} forks() -> int:
            child = os.fork()
            if child == 0:
                {end}
            return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

        with SyncClient(app) as client:
            print(client.call_tool("forks", timeout=50).data, client.call_tool("add", {{"a": 1, "b": 2}}).data)
        """
    )
    assert (done.returncode, done.stdout) == (0, f"{status} 3\n"), done.stderr
    assert ("in the child" in done.stderr) == (status == 1)


@pytest.mark.parametrize("kind", ["threads", "loops"])
def test_an_interpreter_may_end_while_threads_go_on_calling(kind: str) -> None:
    done = run(
        f"""
        under_way = threading.Semaphore(0)

        def call() -> None:
            while True:
                with SyncClient(app) as client:
                    for _ in range(50):
                        client.call_tool("add", {{"a": 1, "b": 2}})
                        under_way.release()

        def acall() -> None:
            async def main() -> None:
                async with Client(app) as client:
                    while True:
                        await client.call_tool("aadd", {{"a": 1, "b": 2}})
                        under_way.release()
            asyncio.run(main())

        for _ in range(3):
            threading.Thread(target={"call" if kind == "threads" else "acall"}, daemon=True).start()
        for _ in range(100):
            under_way.acquire()
        sys.exit(7)
        """,
        options=("-X", "dev"),
    )
    assert done.returncode == 7 and "Fatal" not in done.stderr, done.stderr


def test_the_status_of_a_program_counts_though_a_handler_does_not_come_back() -> None:
    done = run(
        """
        entered = threading.Event()

        @app.tool
        def stay() -> None:
            entered.set()
            time.sleep(600)

        def call() -> None:
            with SyncClient(app) as client:
                client.call_tool("stay")

        threading.Thread(target=call, daemon=True).start()
        entered.wait()
        sys.exit(7)
        """
    )
    assert done.returncode == 7, done.stderr


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python refuses by itself")
def test_sub_interpreters_are_refused_and_harm_nobody() -> None:
    done = run(
        """
        import _xxsubinterpreters
        script = '''
        import gudgeon
        for make in (lambda: gudgeon.Server("x"), gudgeon.SyncClient(["true"]).connect):
            try:
                make()
            except ImportError as error:
                print(error, flush=True)
        '''
        other = _xxsubinterpreters.create()
        _xxsubinterpreters.run_string(other, __import__("textwrap").dedent(script))
        _xxsubinterpreters.destroy(other)
        print(use())
        """
    )
    assert done.returncode == 0 and done.stdout.count("main interpreter only") == 2, done.stderr
    assert done.stdout.endswith("6\n")


SERVERS = {
    "a closure": """
        @app.tool
        def name() -> str:
            return app.name
    """,
    "middleware": """
        @app.tool
        def f() -> str:
            return ""

        @app.middleware
        async def around(request, next):
            return await next(request)

        use(app, "f")
    """,
    "used in memory": """
        @app.tool
        async def f() -> str:
            return app.name

        use(app, "f")
    """,
    "listened": """
        @app.tool
        async def f() -> str:
            return app.name

        async def main() -> None:
            async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url) as client:
                await client.call_tool("f")
        asyncio.run(main())
    """,
    "mounted": """
        other = Server("other")
        other.tool(lambda: app.name, name="f")
        app.mount("other", other)
        app.asgi()
    """,
    "prompts and resources": """
        @app.prompt
        def ask(x: str) -> str:
            return app.name

        @app.resource("t://{x}")
        def read(x: str) -> str:
            return app.name

        @app.complete("ask", "x")
        def complete(prefix: str) -> list[str]:
            return [app.name]
    """,
}


def test_servers_that_nobody_holds_are_garbage() -> None:
    def maker(source: str) -> str:
        made = 'app = Server("made")\n' + textwrap.dedent(source) + "\nreturn weakref.ref(app)\n"
        return "def make():\n" + textwrap.indent(made, "    ") + "MAKERS.append(make)\n"

    done = run(
        """
        import gc, weakref

        def use(app, name):
            with SyncClient(app) as client:
                client.call_tool(name)

        MAKERS = []
        """,
        *map(maker, SERVERS.values()),
        """
        for make in MAKERS:
            made = make()
            for _ in range(1_000):
                gc.collect()
                if made() is None:
                    break
                time.sleep(0.05)
            print(made())
        """,
    )
    left = dict(zip(SERVERS, done.stdout.split(), strict=True))
    assert (done.returncode, left) == (0, dict.fromkeys(SERVERS, "None")), done.stderr


def test_a_server_that_is_used_is_no_garbage() -> None:
    done = run(
        """
        import gc

        def serve():
            app = Server("made")

            @app.tool
            def f() -> str:
                return app.name
            return SyncClient(app).connect(), app.asgi()

        client, asgi = serve()
        for _ in range(3):
            gc.collect()
            print(client.call_tool("f").data)
        """
    )
    assert (done.returncode, done.stdout) == (0, "made\n" * 3), done.stderr
