"""Serves one end of a pair of sockets, for clients of the same process."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any

from .serve import on_descriptors, serve, serve_blocking


class Served:
    """A server in memory, on one end of a pair of sockets. Close it when its client is gone."""

    def __init__(self, app: Any, testing: Any = None) -> None:
        self._app = app
        self._testing = testing
        self._serving: Any = None
        self._runner: Any = None

    async def start(self, fd: int) -> Served:
        """Serves this descriptor on the running loop; it is duplicated, the caller keeps its own."""
        import asyncio

        opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        start = on_descriptors(fd, fd, self._testing)
        self._runner = asyncio.ensure_future(serve(self._app, start, opened=opened.set_result))
        await asyncio.wait([opened, self._runner], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await self._runner
        self._serving = opened.result()
        self._runner.add_done_callback(self._hang_up)
        return self

    def _hang_up(self, runner: Any) -> None:
        """Drops the serving after its end: the loop may end before the client, and a reference keeps the descriptor
        open.
        """
        self._serving = None
        if runner.cancelled():
            self._runner = None

    async def aclose(self) -> None:
        if self._serving is not None:
            self._serving.end()
        if self._runner is not None:
            await self._runner

    def leave(self) -> None:
        """Ends the serving, whose event loop was closed."""
        if self._serving is not None:
            self._serving.end()

    def start_thread(self, fd: int) -> Served:
        """Serves this descriptor from a thread; it is duplicated, the caller keeps its own."""
        import threading

        ready = threading.Event()
        failed: list[BaseException] = []

        def opened(serving: Any) -> None:
            self._serving = serving
            ready.set()

        def run() -> None:
            try:
                serve_blocking(self._app, on_descriptors(fd, fd, self._testing), opened=opened)
            except BaseException as error:
                failed.append(error)
            finally:
                ready.set()

        self._runner = threading.Thread(target=copy_context().run, args=(run,), name="gudgeon-server", daemon=True)
        self._runner.start()
        ready.wait()
        if failed:
            raise failed[0]
        return self

    def close(self) -> None:
        if self._serving is not None:
            self._serving.end()
        if self._runner is not None:
            self._runner.join()
