"""Notices `async def` handlers that block their event loop, and names each of them once in the log.

A thread of its own sends the loop a beat, four times a second while `async def` handlers run, and looks at the loop's
stack when the beat is not answered. A handler costs nothing by that, and a server without calls sends no beats.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import Any

from .._call.entry import answer
from .._call.log import log
from .._model.frames import is_ours

_PERIOD = 0.25  # seconds between two beats
_LATE = 0.05  # seconds without an answer to a beat before the stack is looked at
BLOCKED = 0.25  # seconds for which one handler is then on the stack before it is named


class LoopWatch:
    """Watches the loop that it is made on.

    Args:
        serving: The native server, which knows whether `async def` handlers run.
        loop: The running loop.
    """

    def __init__(self, serving: Any, loop: Any) -> None:
        self._serving = serving
        self._loop = loop
        self._loops_thread = threading.get_ident()
        self._wanted = threading.Event()
        self._is_over = False
        self._has_thread = False
        self._named: set[Any] = set()

    def begin(self) -> None:
        """Watches from now on, until no handler runs any more. Called on the loop before a handler starts."""
        self._wanted.set()
        if not self._has_thread:
            self._has_thread = True
            threading.Thread(target=self._run, name="gudgeon-loop-watch", daemon=True).start()

    def end(self) -> None:
        """Watches no longer."""
        self._is_over = True
        self._wanted.set()

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            # The handler that woke this thread is only just about to start.
            is_wanted = True
            while is_wanted and not self._is_over:
                self._beat()
                time.sleep(_PERIOD)
                is_wanted = self._serving.is_to_be_watched()
            if self._is_over:
                return

    def _beat(self) -> None:
        answered = threading.Event()
        try:
            self._loop.call_soon_threadsafe(answered.set)
        except RuntimeError:
            return  # the loop is closed
        if answered.wait(_LATE):
            return
        before = self._blocker()
        # While the beat waits for its turn, no task gets two of them: a handler that is seen twice never let go.
        if answered.wait(BLOCKED):
            return
        after = self._blocker()
        if before is not None and after is not None and before[0] is after[0]:
            self._name(*after[1:])
        while not (self._is_over or answered.wait(_PERIOD)):
            pass

    def _blocker(self) -> tuple[Any, Any, str] | None:
        """The call whose handler the loop runs at this moment, the handler, and the program's line that it is at."""
        frame = sys._current_frames().get(self._loops_thread)
        line = None
        while frame is not None and frame.f_code is not answer.__code__:
            if not is_ours(frame.f_code.co_filename):
                line = (frame.f_code.co_filename, frame.f_lineno)
            frame = frame.f_back
        if frame is None or line is None:
            return None
        found = frame.f_locals
        return found["call"], found["invoke"], f"{line[0]}:{line[1]}"

    def _name(self, invoke: Any, line: str) -> None:
        method, name = getattr(invoke, "subject", None) or ("a notification's handler", None)
        what = f"tool {name!r}" if method == "tools/call" else f"{method} {name!r}" if name else method
        if what in self._named:
            return
        self._named.add(what)
        import logging

        log(
            logging.WARNING,
            "%s: the async def handler blocks the event loop, and all other async def handlers with it (at %s); "
            "await what it waits for, call it by asyncio.to_thread, or make the handler a def, which runs on a thread",
            what,
            line,
        )
