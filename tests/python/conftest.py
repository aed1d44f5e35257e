"""Contexts for tests of plans, which run without a server."""

import sys
import types
from typing import Any

import pytest

from gudgeon._plan.contexts import CallContext


class _FakeContext(CallContext):
    def __init__(self, call: Any, app: Any) -> None:
        self.call = call
        self.app = app

    def __class_getitem__(cls, item: Any) -> Any:
        return types.GenericAlias(cls, item)


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A `gudgeon.context` whose contexts only remember their call and app."""
    module: Any = types.ModuleType("gudgeon.context")
    module.Context = type("Context", (_FakeContext,), {"_is_async": True})
    module.SyncContext = type("SyncContext", (_FakeContext,), {"_is_async": False})
    monkeypatch.setitem(sys.modules, "gudgeon.context", module)
    import gudgeon

    for name, item in (("context", module), ("Context", module.Context), ("SyncContext", module.SyncContext)):
        monkeypatch.setattr(gudgeon, name, item, raising=False)
    return module
