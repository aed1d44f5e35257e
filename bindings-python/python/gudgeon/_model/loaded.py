"""Modules that the program has imported."""

from __future__ import annotations

import sys
from typing import Any


def loaded(name: str) -> Any:
    """Returns a module; None if it was not imported, or is not complete because another thread is importing it."""
    module = sys.modules.get(name)
    return None if getattr(getattr(module, "__spec__", None), "_initializing", False) else module
