"""The queue of responses that one event loop waits on: one wake-up for everything that has arrived."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from time import monotonic
from typing import Any
from weakref import WeakValueDictionary, finalize

from .._model.event_loop import running_loop
from .._model.frames import from_here
from .._model.json import encode
from ..errors import McpError
from .core import PAUSE, Ask, Core, Steps, answer_of, progress_of
from .exit import log_failure

TURN = 0.02  # seconds of callbacks, after which other tasks of the loop run
LOOK = 0.1  # seconds after which a call looks again whether the client's own loop runs
_queues: dict[asyncio.AbstractEventLoop, LoopQueue] = {}


class LoopQueue:
    """The responses and notifications for the clients of one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        from .._native import Mailbox

        self.loop = loop
        self.mailbox = Mailbox()
        self._waiting: dict[int, tuple[asyncio.Future[Any], Callable[..., Any] | None, Any]] = {}
        # The contexts of calls with middleware, and the tasks that run it.
        self._callers: dict[int, tuple[Context, list[asyncio.Task[Any]]]] = {}
        self._cores: WeakValueDictionary[int, Core] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._questions: dict[int, asyncio.Task[Any]] = {}
        drain = _Drain(self)
        try:
            loop.add_reader(self.mailbox.fileno(), drain)
        except (NotImplementedError, AttributeError):
            self._watch_from_a_thread()
        else:
            # The loop has the only reference, and drops it when it is closed.
            finalize(drain, self._leave).atexit = False

    def _watch_from_a_thread(self) -> None:
        """Watches the file descriptor from a thread, for loops that can't."""
        import select
        import threading

        loop, mailbox, drained = self.loop, self.mailbox, threading.Event()

        def drain() -> None:
            self.drain()
            drained.set()

        def watch() -> None:
            while not loop.is_closed():
                if select.select([mailbox.fileno()], [], [], 1)[0]:
                    drained.clear()
                    try:
                        loop.call_soon_threadsafe(drain)
                    except RuntimeError:
                        break  # it was closed meanwhile
                    drained.wait(1)
            self._leave()

        threading.Thread(target=watch, name="gudgeon-client-watch", daemon=True).start()

    def _leave(self) -> None:
        """Cancels requests and refuses questions: the loop is closed, so that nothing waits for or answers them."""
        self.mailbox.close()
        for ticket, (_, _, native) in list(self._waiting.items()):
            native.cancel(self.mailbox, ticket)

    def adopt(self, core: Core) -> None:
        """Delivers the notifications of a client on this loop from now on."""
        for queue in list(_queues.values()):
            queue._cores.pop(core.number, None)
        self._cores[core.number] = core

    async def run(self, core: Core, steps: Steps, closes: bool = False) -> Any:
        """Runs the steps of an operation. Raises McpError if the client's own loop does not run, unless they close the
        client.
        """
        guests = () if closes or self.attend(core) else (core,)
        try:
            step = next(steps)
            while True:
                try:
                    value = await self.ask(core.native, step, guests)
                except BaseException as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(value)
        except StopIteration as end:
            return end.value
        except Exception as error:
            raise from_here(error)  # noqa: B904

    async def close(self, core: Core, other_end: Any) -> None:
        """Closes a client, and the other end of its connection if there is one in this process. Raises McpError if that
        one can't be ended, because its loop does not run.
        """
        home = self if core.number in self._cores else _home_of(core)
        if home is None:
            self._take_over(core)
        try:
            await self.run(core, core.close(), closes=True)
        finally:
            if home is not None and home is not self:
                home._cores.pop(core.number, None)
            if other_end is not None and not core.is_forked():
                await self._end(core, home, other_end)

    async def _end(self, core: Core, home: LoopQueue | None, other_end: Any) -> None:
        if core.stranded is not None:
            other_end.leave()
        elif home is None or home is self:
            await other_end.close()
        elif home.loop.is_running():
            closing = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(other_end.close(), home.loop))
            while not (await asyncio.wait([closing], timeout=LOOK))[0]:
                if not home.loop.is_running():
                    raise _not_running(core)
            await closing
        else:
            raise _not_running(core)

    def attend(self, core: Core) -> bool:
        """Delivers the notifications of a client on this loop if its own loop is closed; returns whether they are
        delivered here. Raises McpError if the client's own loop is another one, and does not run.
        """
        if core.number in self._cores:
            return True
        home = _home_of(core)
        if home is None:
            self._take_over(core)
            return True
        if not home.loop.is_running():
            raise _not_running(core)
        return False

    def _take_over(self, core: Core) -> None:
        self.adopt(core)
        core.native.move_to(self.mailbox)
        core.leave_loop()

    async def ask(self, native: Any, ask: Ask, guests: Sequence[Core] = ()) -> Any:
        """Makes a request of a client or a group, and waits for its outcome. `guests` are its clients whose own loop is
        another one.
        """
        if ask is PAUSE:
            return await asyncio.sleep(0)
        ticket = ask.start(self.mailbox)
        future: asyncio.Future[Any] = self.loop.create_future()
        self._waiting[ticket] = (future, ask.on_progress, native)
        if guests:
            self.loop.call_later(LOOK, self._look_after, native, ticket, guests)
        if ask.has_middleware:
            self._callers[ticket] = (copy_context(), [])
        try:
            return answer_of(await future)
        except asyncio.CancelledError:
            native.cancel(self.mailbox, ticket)
            raise
        finally:
            del self._waiting[ticket]
            if ask.has_middleware:
                for task in self._callers.pop(ticket)[1]:
                    task.cancel()

    def _look_after(self, native: Any, ticket: int, guests: Sequence[Core]) -> None:
        """Ends a request with an error if a client's own loop does not run any more, because then nothing answers the
        server's questions and no middleware continues.
        """
        waiting = self._waiting.get(ticket)
        if waiting is None or waiting[0].done():
            return
        try:
            for core in guests:
                self.attend(core)
                core.check_open()
        except McpError as error:
            native.cancel(self.mailbox, ticket)
            waiting[0].set_exception(error)
        else:
            self.loop.call_later(LOOK, self._look_after, native, ticket, guests)

    def drain(self) -> None:
        """Delivers what has arrived, for a while: the mailbox stays readable while anything is left in it, so that slow
        callbacks take turns with the other tasks of the loop.
        """
        end = monotonic() + TURN
        while events := self.mailbox.take():
            for event in events:
                self._receive(event)
            if monotonic() > end:
                return

    def _receive(self, event: tuple[Any, ...]) -> None:
        what, to = event[0], event[1]
        if what in ("done", "failed", "raised"):
            waiting = self._waiting.get(to)
            if waiting is not None and not waiting[0].done():
                waiting[0].set_result(event)
        elif what == "progress":
            waiting = self._waiting.get(to)
            if waiting is not None and waiting[1] is not None:
                self._notify(waiting[1], progress_of(event))
        elif what == "middleware":
            caller, core = self._callers.get(to), self._cores.get(event[2])
            if core is not None and caller is not None:
                # A context can't be entered twice at once.
                caller[1].append(caller[0].copy().run(self._spawn, self._run_middleware(core, event)))
            elif core is not None:
                problem = "a client with middleware must be called in the event loop in which it was connected"
                core.native.middleware_fail(event[3], RuntimeError(problem))
        else:
            core = self._cores.get(to)
            if core is not None:
                self._deliver(core, event)

    async def _run_middleware(self, core: Core, event: tuple[Any, ...]) -> None:
        from .middleware import run_on_loop

        native, run = core.native, event[3]

        async def send(params: bytes) -> Any:
            outcome = await self.ask(native, Ask(lambda mailbox: native.middleware_next(mailbox, run, params)))
            return outcome[2]

        try:
            native.middleware_finish(run, await run_on_loop(core, event, send))
        except BaseException as error:
            native.middleware_fail(run, error)
            if not isinstance(error, Exception):
                raise

    def _deliver(self, core: Core, event: tuple[Any, ...]) -> None:
        if event[0] == "question":
            number = event[2]
            task = self._questions[number] = self._spawn(self._answer(core, event))
            task.add_done_callback(lambda _: self._questions.pop(number, None))
        elif event[0] == "withdrawn":
            question = self._questions.get(event[2])
            if question is not None:
                question.cancel()
        else:
            step = core.notified(event)
            if step is not None:
                self._notify(step.callback, step.value)

    def _notify(self, callback: Callable[..., Any], value: Any) -> None:
        """Calls a callback; its exception is logged."""
        try:
            outcome = callback(value)
        except Exception as error:
            log_failure(callback, error)
            return
        if hasattr(outcome, "__await__"):
            self._spawn(_awaited(callback, outcome))

    async def _answer(self, core: Core, event: tuple[Any, ...]) -> None:
        from .questions import answering

        _, _, number, kind, params, key = event
        callback = core.options.callback(kind)
        try:
            steps = answering(kind, callback, params, key, core.group_name)
            try:
                value = next(steps)
                while True:
                    value = steps.send(await value if hasattr(value, "__await__") else value)
            except StopIteration as end:
                wrong = core.native.answer(number, end.value)
                if wrong is not None:
                    log_failure(callback, TypeError(wrong))
        except asyncio.CancelledError:
            core.native.refuse(number, encode({"kind": "cancelled"}))
            raise
        except Exception as error:
            core.refuse(number, error, callback)

    def _spawn(self, coroutine: Any) -> asyncio.Task[Any]:
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class _Drain:
    """The callback of a loop, which delivers what has arrived."""

    def __init__(self, queue: LoopQueue) -> None:
        self._queue = queue

    def __call__(self) -> None:
        self._queue.drain()


def _home_of(core: Core) -> LoopQueue | None:
    """Returns the queue of the loop on which the notifications of a client are delivered; None if it is closed."""
    for loop, queue in list(_queues.items()):
        if core.number in queue._cores and not loop.is_closed():
            return queue
    return None


def _not_running(core: Core) -> McpError:
    server = core.serving_here()
    return McpError(
        f"this client was connected in another event loop, which does not run now, so that {server or 'its callbacks'} "
        "can't answer",
        hint="use the client inside the asyncio.run() in which it was connected, or open one for each loop",
        target=core.target_name(),
    )


async def _awaited(callback: Callable[..., Any], outcome: Awaitable[Any]) -> None:
    try:
        await outcome
    except Exception as error:
        log_failure(callback, error)


def loop_queue() -> LoopQueue:
    """Returns the queue of the running loop."""
    loop = running_loop("Client", "SyncClient")
    queue = _queues.get(loop)
    if queue is None:
        for other in list(_queues):
            if other.is_closed():
                _queues.pop(other, None)
        queue = _queues[loop] = LoopQueue(loop)
    return queue
