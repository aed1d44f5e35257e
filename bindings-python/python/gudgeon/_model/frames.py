"""Tracebacks that show the program's own lines, not those of this package."""

from __future__ import annotations

import os
import sys
from types import FrameType, TracebackType
from typing import TypeVar

_HOME = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")
_E = TypeVar("_E", bound=BaseException)


def is_ours(filename: str) -> bool:
    """Returns whether a code object with this filename belongs to this package, or was made by it."""
    return filename.startswith(("<gudgeon ", _HOME))


def from_here(error: _E) -> _E:
    """Returns the error, to be raised by the caller, without the frames of this package below the caller.

    An error that was raised outside of this package, in a callback or a type of the program's, keeps its frames. The
    frames of this package above the caller get `__tracebackhide__`, so that pytest shows the call in the test.
    """
    trace: TracebackType | None = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or not is_ours(trace.tb_frame.f_code.co_filename):
        return error
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame.f_locals["__tracebackhide__"] = True
        frame = frame.f_back
    return error.with_traceback(None)
