"""Handlers over real pipes: exactly one reply each, whatever a handler does."""

import time

import pytest

from serverproc import ServerProcess

pytestmark = pytest.mark.io

ERAS = ("legacy", "modern")
FAILURES = """
    @app.tool
    def quick() -> str:
        return "quick"

    @app.tool
    def raises() -> str:
        raise ValueError("secret")

    @app.tool
    async def raises_async() -> str:
        raise ValueError("secret")

    @app.tool
    def says() -> str:
        raise ToolError("try again")

    @app.tool
    def exits() -> str:
        raise SystemExit(3)

    @app.tool
    async def exits_async() -> str:
        raise SystemExit(3)

    @app.tool
    def interrupts() -> str:
        raise KeyboardInterrupt

    @app.tool
    async def interrupts_async() -> str:
        raise KeyboardInterrupt

    @app.tool
    def unsayable() -> object:
        return object()

    @app.tool
    def surrogate() -> str:
        return chr(0xD800)

    @app.tool
    async def surrogate_async() -> str:
        return chr(0xD800)

    @app.tool
    def garbage() -> object:
        import msgspec
        return {"a": msgspec.Raw(b"{]")}

    @app.tool
    def pretty() -> object:
        import msgspec
        return {"a": msgspec.Raw(b'{\\n"b": 1}')}

    @app.tool
    async def cancels_itself() -> str:
        asyncio.current_task().cancel()
        await asyncio.sleep(1)
        return "no"

    @app.tool
    async def cancelled_early(seconds: float = 0) -> str:
        return "ran"

    @app.tool
    def deep() -> object:
        value = []
        for _ in range(100_000):
            value = [value]
        return value
"""
NAMES = [line.split("def ")[1].split("(")[0] for line in FAILURES.splitlines() if "def " in line]


@pytest.mark.parametrize("era", ERAS)
def test_every_call_gets_exactly_one_reply(era: str) -> None:
    with ServerProcess(FAILURES, era) as server:
        ids = [(server.start_tool(name), name) for name in NAMES]
        replies = {name: server.reply(id) for id, name in ids}
        server.close_input()
        assert server.wait() == 0, server.stderr
    answered = [frame["id"] for frame in server.seen if "id" in frame and "method" not in frame]
    assert sorted(answered) == sorted(set(answered))
    good = {name for name in NAMES if not replies[name]["result"].get("isError")}
    assert good == {"quick", "pretty", "cancelled_early", "surrogate", "surrogate_async"}
    assert {replies[name]["result"]["content"][0]["text"] for name in ("surrogate", "surrogate_async")} == {"\ufffd"}
    assert replies["says"]["result"]["content"] == [{"type": "text", "text": "try again"}]
    for name in ("raises", "raises_async"):
        text = replies[name]["result"]["content"][0]["text"]
        assert "ValueError" in text and "reference" in text and "secret" not in text
    assert server.stderr.count("ValueError: secret") == 2
    assert "SystemExit" in replies["exits"]["result"]["content"][0]["text"]
    assert "SystemExit" in replies["exits_async"]["result"]["content"][0]["text"]


def test_a_task_cancelled_before_its_first_step_is_answered_once() -> None:
    source = """
        class Loop(asyncio.SelectorEventLoop):
            def create_task(self, coro, **more):
                task = super().create_task(coro, **more)
                if coro.__name__ == "answer":
                    task.cancel()
                return task
            def get_task_factory(self):
                return "not eager"

        class Policy(asyncio.DefaultEventLoopPolicy):
            def new_event_loop(self):
                return Loop()

        asyncio.set_event_loop_policy(Policy())

        @app.tool
        async def never() -> str:
            return "ran"
    """
    with ServerProcess(source) as server:
        reply = server.tool("never")
        assert reply["isError"] and "cancelled" in reply["content"][0]["text"]
        assert server.ask("ping")["result"] == {}


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_cancelled_call_is_not_answered_and_its_handler_knows(kind: str) -> None:
    source = """
        seen = []

        @app.tool
        async def waits_async() -> str:
            seen.append("begun")
            try:
                await asyncio.sleep(600)
            except asyncio.CancelledError:
                seen.append("async")
                raise
            return "no"

        @app.tool
        def waits(ctx: SyncContext) -> str:
            seen.append("begun")
            while not ctx.cancelled:
                time.sleep(0.005)
            seen.append("sync")
            return "no"

        @app.tool
        def told() -> str:
            return ",".join(seen)
    """
    with ServerProcess(source) as server:
        id = server.start_tool("waits" if kind == "def" else "waits_async")
        deadline = time.monotonic() + 60
        while server.text("told") != "begun":
            assert time.monotonic() < deadline
        server.send({"method": "notifications/cancelled", "params": {"requestId": id}})
        while (told := server.text("told")) == "begun":
            assert time.monotonic() < deadline
        assert told == ("begun,sync" if kind == "def" else "begun,async")
        server.close_input()
        assert server.wait() == 0
        assert all(frame.get("id") != id for frame in server.seen)


def test_a_queued_call_that_was_cancelled_never_runs() -> None:
    source = """
        ran = []
        go = threading.Event()

        @app.tool(concurrency=1)
        def slow(name: str) -> str:
            ran.append(name)
            assert go.wait(60)
            return name

        @app.tool
        def goes() -> None:
            go.set()

        @app.tool
        def told() -> list[str]:
            return ran
    """
    with ServerProcess(source) as server:
        first = server.start_tool("slow", name="first")
        second = server.start_tool("slow", name="second")
        server.send({"method": "notifications/cancelled", "params": {"requestId": second}})
        server.tool("goes")
        assert server.reply(first)["result"]["structuredContent"] == {"result": "first"}
        # Its turn would come before that of the next one.
        server.tool("slow", name="third")
        assert server.tool("told")["structuredContent"] == {"result": ["first", "third"]}


SLOW_AND_QUICK = """
    go = threading.Semaphore(0)

    @app.tool
    def slow() -> str:
        assert go.acquire(timeout=60)
        return "slow"

    @app.tool
    def goes() -> None:
        go.release()

    @app.tool
    def quick() -> str:
        return "quick"
"""


def test_a_slow_handler_stalls_nobody_also_the_first_time() -> None:
    with ServerProcess(SLOW_AND_QUICK) as server:
        server.text("quick")
        for _ in range(2):
            id = server.start_tool("slow")
            for _ in range(20):
                assert server.text("quick") == "quick"
            assert all(frame.get("id") != id for frame in server.seen)
            server.tool("goes")
            assert server.reply(id)["result"]["content"][0]["text"] == "slow"


def test_finished_replies_do_not_wait_for_a_slow_handler_in_their_batch() -> None:
    with ServerProcess(SLOW_AND_QUICK) as server:
        frames = [
            b'{"jsonrpc":"2.0","id":"%s","method":"tools/call","params":{"name":"%s"}}\n' % (id, tool)
            for id, tool in ((b"a", b"quick"), (b"b", b"slow"), (b"c", b"quick"))
        ]
        server.write(b"".join(frames))
        assert {server.receive()["id"], server.receive()["id"]} == {"a", "c"}
        server.tool("goes")
        assert server.reply("b")["result"]["content"][0]["text"] == "slow"


def test_thread_true_runs_beside_and_thread_false_in_place() -> None:
    source = """
        together = threading.Barrier(4)

        @app.tool(thread=True)
        def beside() -> int:
            together.wait(60)
            return threading.get_ident()

        @app.tool(thread=False)
        def in_place() -> int:
            time.sleep(0.02)
            return threading.get_ident()
    """
    with ServerProcess(source) as server:
        ids = [server.start_tool("beside") for _ in range(4)]
        assert len({server.reply(id)["result"]["structuredContent"]["result"] for id in ids}) == 4
        ids = [server.start_tool("in_place") for _ in range(4)]
        assert len({server.reply(id)["result"]["structuredContent"]["result"] for id in ids}) == 1


def test_workers_are_as_many_as_asked_for_and_the_rest_waits() -> None:
    source = """
        now, most = 0, 0
        lock = threading.Lock()
        together = threading.Barrier(3)

        @app.tool(thread=True)
        def slow() -> str:
            global now, most
            with lock:
                now += 1
                most = max(most, now)
            together.wait(60)
            with lock:
                now -= 1
            return "done"

        @app.tool
        def told() -> int:
            return most
    """
    with ServerProcess(source, options=", threads=3") as server:
        ids = [server.start_tool("slow") for _ in range(12)]
        server.tool("told")
        for id in ids:
            server.reply(id)
        assert server.tool("told")["structuredContent"]["result"] in (3, 4)


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_timeout_answers_and_cancels(kind: str) -> None:
    source = """
        @app.tool(timeout=0.2)
        def slow(ctx: SyncContext) -> str:
            while not ctx.cancelled:
                time.sleep(0.01)
            return "late"

        @app.tool(timeout=0.2)
        async def slow_async() -> str:
            await asyncio.sleep(600)
            return "late"
    """
    with ServerProcess(source) as server:
        start = time.monotonic()
        result = server.tool("slow" if kind == "def" else "slow_async")
        assert time.monotonic() - start > 0.15
        assert result["isError"] and "longer than its 0.2 s" in result["content"][0]["text"]


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_progress_and_logs_arrive_while_the_handler_runs(kind: str) -> None:
    source = """
        go = threading.Event()

        @app.tool(thread=True)
        def works(ctx: SyncContext) -> str:
            ctx.progress(1, 2, "half")
            ctx.warning("careful", at=1)
            go.wait(60)
            return "done"

        @app.tool
        async def works_async(ctx: Context) -> str:
            ctx.progress(1, 2, "half")
            await ctx.warning("careful", at=1)
            while not go.is_set():
                await asyncio.sleep(0.01)
            return "done"

        @app.tool
        def let_go() -> None:
            go.set()
    """
    with ServerProcess(source) as server:
        name = "works" if kind == "def" else "works_async"
        id = server.start("tools/call", {"name": name, "_meta": {"progressToken": "p"}})
        step = server.until("notifications/progress")["params"]
        assert step == {"progressToken": "p", "progress": 1, "total": 2, "message": "half"}
        message = server.until("notifications/message")["params"]
        assert message["level"] == "warning" and message["data"] == {"message": "careful", "at": 1}
        server.tool("let_go")
        assert server.reply(id)["result"]["content"][0]["text"] == "done"


def test_context_variables_reach_handlers_and_do_not_leak() -> None:
    source = """
        from contextvars import ContextVar
        from gudgeon import current_context, current_sync_context

        var = ContextVar("var", default="unset")
        var.set("served")

        @app.tool
        def sync(value: str) -> str:
            before = var.get()
            var.set(value)
            return f"{before} {current_sync_context().request_id}"

        @app.tool
        async def other(value: str) -> str:
            before = var.get()
            var.set(value)
            await asyncio.sleep(0)
            return f"{before} {var.get() == value} {current_context().request_id}"
    """
    with ServerProcess(source) as server:
        for _ in range(3):
            id = server.start_tool("sync", value="mine")
            assert server.reply(id)["result"]["content"][0]["text"] == f"served {id}"
            id = server.start_tool("other", value="mine")
            assert server.reply(id)["result"]["content"][0]["text"] == f"served True {id}"


def test_what_a_context_knows() -> None:
    source = """
        @app.tool
        def facts(ctx: SyncContext) -> dict:
            ctx.session["n"] = ctx.session.get("n", 0) + 1
            return {
                "id": ctx.request_id, "revision": ctx.revision, "client": ctx.client.name, "meta": dict(ctx.meta),
                "server": ctx.server.name, "n": ctx.session["n"], "cancelled": ctx.cancelled, "state": ctx.state,
                "principal": ctx.principal, "headers": dict(ctx.headers),
            }
    """
    with ServerProcess(source) as server:
        server.tool("facts")
        huge = 2**60 + 1
        server.send({"id": huge, "method": "tools/call", "params": {"name": "facts", "_meta": {"a": 1}}})
        facts = server.reply(huge)["result"]["structuredContent"]
    assert facts == {
        "id": huge,
        "revision": "2025-11-25",
        "client": "t",
        "meta": {"a": 1},
        "server": "t",
        "n": 2,
        "cancelled": False,
        "state": {},
        "principal": None,
        "headers": {},
    }


def test_asking_says_what_is_missing_and_must_be_awaited() -> None:
    source = """
        @app.tool
        async def tested(ctx: Context) -> str:
            asking = ctx.elicit("Sure?", bool)
            try:
                return "yes" if asking else "no"
            except TypeError as error:
                asking.close()
                return str(error)

        @app.tool
        async def asks(ctx: Context) -> str:
            return str(await asyncio.wait_for(ctx.elicit("Sure?", bool), 60))

        @app.tool
        def asks_sync(ctx: SyncContext) -> str:
            return str(ctx.elicit("Sure?", bool))

        @app.tool
        async def forgets(ctx: Context) -> str:
            import warnings
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ctx.elicit("Sure?", bool)
            return str(caught[0].message)
    """
    with ServerProcess(source) as server:
        assert "is not the answer; write" in server.text("tested")
        assert "never awaited" in server.text("forgets")
        for name in ("asks", "asks_sync"):
            result = server.tool(name)
            assert result["isError"] and "elicitation" in result["content"][0]["text"]
    with ServerProcess(source, "modern") as server:
        error = server.reply(server.start_tool("asks"))["error"]
        assert error["code"] == -32021 and error["data"] == {"requiredCapabilities": {"elicitation": {}}}
