"""Warns of components that known hosts refuse, at the line that registers them."""

from __future__ import annotations

import sys
import warnings


def warn(text: str) -> None:
    """Emits a `UserWarning` at the first line outside of this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] == "gudgeon":
        frame, level = frame.f_back, level + 1
    warnings.warn(text, UserWarning, stacklevel=level)
