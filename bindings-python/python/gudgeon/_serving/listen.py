"""Serving at an address."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from .._call.log import report
from .._model.names import Listening
from .http_options import checked
from .process_end import end_despite_threads
from .serve import Start, check_loop, serve, serve_blocking
from .signals import Signals
from .standard_error import announce


def at_address(at: str, options: dict[str, Any], place: str) -> Start:
    """Starts to listen. Raises TypeError or ValueError for a wrong option, and OSError if the address can't be used."""
    encoded = checked(options, place)
    return lambda app, context: app._native.listen(at, encoded, app, context)


def _sharing(url: str, encoded: bytes, group: str | None) -> Start:
    return lambda app, context: app._native.listen(url, encoded, app, context, shares_port=True, group=group)


def run_address(app: Any, at: str, options: dict[str, Any], workers: int) -> None:
    """Implements `app.run` at an address."""
    start = at_address(at, options, "run()")
    if workers == 1:
        _run_at(app, start, lambda serving: _announce(app, serving))
        return
    from .workers import run_workers

    encoded = checked(options, "run()")

    def run(url: str, group: str | None, opened: Any) -> None:
        # A terminal sends Ctrl-C to all processes: the workers leave it to the parent.
        _run_at(app, _sharing(url, encoded, group), opened, is_worker=True)

    run_workers(app, at, workers, run)


async def serve_address(app: Any, at: str, options: dict[str, Any]) -> None:
    """Implements `app.serve` at an address; the first cancellation shuts down gracefully."""
    import asyncio

    opened: list[Any] = []

    def on_open(serving: Any) -> None:
        _warn(serving)
        opened.append(serving)

    start = at_address(at, options, "serve()")
    serving = asyncio.ensure_future(serve(app, start, grace=0.0, opened=on_open))
    try:
        await asyncio.shield(serving)
    except asyncio.CancelledError:
        if serving.done():
            raise
        for listener in opened:
            listener.end()
        if not opened:
            serving.cancel()
        await serving
        raise


@asynccontextmanager
async def listening(app: Any, at: str, options: dict[str, Any]) -> AsyncGenerator[Listening]:
    """Implements `app.listen`."""
    import asyncio

    check_loop()
    opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
    start = at_address(at, options, "listen()")
    task = asyncio.ensure_future(serve(app, start, grace=0.0, opened=opened.set_result))
    try:
        await asyncio.wait([opened, task], return_when=asyncio.FIRST_COMPLETED)
        if not opened.done():
            await task
        _warn(opened.result())
        here = _Here(opened.result(), task)
        yield here
        await here.close()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.wait([task])


class _Here(Listening):
    def __init__(self, serving: Any, task: Any) -> None:
        self.url = serving.url
        self._serving = serving
        self._task = task

    async def close(self) -> None:
        self._serving.end()
        await self._task


def _announce(app: Any, serving: Any) -> None:
    _warn(serving)
    # The URL has a line of its own: programs that start servers read it.
    announce(f"{app.name or 'gudgeon'} serves (Ctrl-C ends it)\n{serving.url}")


def _warn(serving: Any) -> None:
    if serving.warning is not None:
        report(serving.warning)


def _run_at(app: Any, start: Any, opened: Any, *, is_worker: bool = False) -> None:
    """Serves an address until a signal arrives and the calls in flight are answered."""
    with Signals(passes_interrupts=is_worker) as signals:
        serve_blocking(app, start, grace=0.0, signals=signals, opened=opened)
    end_despite_threads()
