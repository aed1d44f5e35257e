"""The mark of tests with processes, sockets or limits of real time, and contexts for plans without a server."""

import sys
import types
from typing import Any

import pytest

from gudgeon._plan.contexts import CallContext

# The events of `sys.audit` that a test causes which starts a process or opens a socket by Python's own modules.
_IO = {"os.fork", "os.posix_spawn", "socket.bind", "socket.connect", "subprocess.Popen"}
_is_io_forbidden = False


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", 'io: the test has processes, sockets or limits of real time; the others run with -m "not io"'
    )
    sys.addaudithook(_check_event)


def _check_event(event: str, _: tuple[Any, ...]) -> None:
    if _is_io_forbidden and event in _IO:
        raise RuntimeError(f"{event} in a test without the mark: write @pytest.mark.io above it")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Any:
    global _is_io_forbidden
    _is_io_forbidden = item.get_closest_marker("io") is None
    try:
        return (yield)
    finally:
        _is_io_forbidden = False


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
