"""What the plan asks of `gudgeon.context`, in a few lines: these tests run without the native module."""

import sys
import types
from typing import Any

import pytest


class _FakeContext:
    def __init__(self, call: Any, app: Any) -> None:
        self.call = call
        self.app = app

    def __class_getitem__(cls, item: Any) -> Any:
        return types.GenericAlias(cls, item)


@pytest.fixture
def contexts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A `gudgeon.context` whose contexts only remember their call and app."""
    module: Any = types.ModuleType("gudgeon.context")
    module.Context = type("Context", (_FakeContext,), {})
    module.SyncContext = type("SyncContext", (_FakeContext,), {})
    module.make_context, module.make_sync_context = module.Context, module.SyncContext
    monkeypatch.setitem(sys.modules, "gudgeon.context", module)
    import gudgeon

    for name, item in (("context", module), ("Context", module.Context), ("SyncContext", module.SyncContext)):
        monkeypatch.setattr(gudgeon, name, item, raising=False)
    return module
