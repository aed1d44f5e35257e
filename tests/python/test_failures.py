"""Exceptions → the description that the core makes an answer of."""

import asyncio
import importlib.machinery
import json
import sys
import time
import types
from typing import Any

import pytest

from gudgeon import Server, SyncClient
from gudgeon._call.failures import describe_error
from gudgeon._call.log import log
from gudgeon._plan.invalid_arguments import InvalidArguments
from gudgeon.errors import Cancelled, Declined, ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired
from gudgeon.types import ElicitRequest, Image, ToolResult
from plans import tool

pytestmark = pytest.mark.usefixtures("contexts")


def logged(caplog: pytest.LogCaptureFixture) -> str:
    """Returns the log records, which may come after the reply."""
    end = time.monotonic() + 60
    while not caplog.text and time.monotonic() < end:
        time.sleep(0.005)
    return caplog.text


def described(error: BaseException, *expose: type[Exception]) -> Any:
    return json.loads(describe_error(error, expose))


def test_a_module_that_another_thread_is_importing_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    # As `asyncio` is while the first event loop starts.
    for name in ("asyncio", "logging"):
        incomplete = types.ModuleType(name)
        incomplete.__spec__ = importlib.machinery.ModuleSpec(name, None)
        incomplete.__spec__._initializing = True  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, name, incomplete)
    try:
        assert described(ValueError("x"))["message"] == "x"
        log(40, "not logged")
    finally:
        monkeypatch.undo()


def test_failures_are_described() -> None:
    assert described(ToolError("no\nway", k=1)) == {"kind": "tool", "message": "no\nway", "meta": {"k": 1}}
    assert described(ProtocolError(-1, "m", {"a": 1})) == {
        "kind": "protocol",
        "code": -1,
        "message": "m",
        "data": {"a": 1},
    }
    assert described(ResourceNotFound("a:b")) == {"kind": "notFound", "uri": "a:b"}
    assert described(ResourceNotFound("a:b", "gone")) == {"kind": "notFound", "uri": "a:b", "message": "gone"}
    assert described(InvalidArguments("x")) == {"kind": "invalid", "message": "x"}
    assert described(Declined("Sure?")) == {"kind": "declined", "message": "Sure?"}
    assert described(Cancelled("Sure?")) == {"kind": "dismissed", "message": "Sure?"}
    assert described(asyncio.CancelledError()) == {"kind": "cancelled"}
    assert described(KeyError("x"), LookupError) == {"kind": "exposed", "message": "'x'"}
    assert described(ValueError(), ValueError) == {"kind": "exposed", "message": "ValueError"}
    url = described(UrlElicitationRequired([ElicitRequest(mode="url", message="m", url="https://e.org", id="1")]))
    assert (url["code"], url["data"]["elicitations"][0]["elicitationId"]) == (-32042, "1")


def test_other_exceptions_show_type_message_and_the_users_lines() -> None:
    def boom() -> None:
        raise ValueError("bad")

    with pytest.raises(ValueError) as caught:
        tool(boom).invoke(b"{}", None)
    out = described(caught.value)
    assert (out["kind"], out["type"], out["message"]) == ("exception", "ValueError", "bad")
    assert "in boom" in out["traceback"] and out["traceback"].endswith("ValueError: bad\n")


@pytest.mark.parametrize("behind_middleware", [False, True])
@pytest.mark.parametrize("debug", [False, True])
def test_the_log_shows_the_users_lines_and_clients_only_where_they_may(
    debug: bool, behind_middleware: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app = Server("t", debug=debug)

    def helper() -> str:
        raise ValueError("a secret")

    @app.tool
    def crash() -> str:
        return helper()

    @app.tool
    async def crash_soon() -> str:
        return helper()

    @app.prompt
    def review() -> str:
        return helper()

    if behind_middleware:

        @app.middleware
        async def around(request: Any, next: Any) -> Any:
            return await next(request)

    with SyncClient(app) as client:
        for name in ("crash", "crash_soon"):
            caplog.clear()
            text = client.call_tool(name, raise_on_error=False).text
            log = logged(caplog)
            assert "in helper" in log and f"in {name}" in log and "a secret" in log
            assert behind_middleware or '_call/entry.py"' not in log, (
                "what is ours comes before the user's lines, and is left out"
            )
            if debug:
                assert text.startswith("ValueError: a secret\n") and "in helper" in text
            else:
                reference = text.split("(reference ")[1].rstrip(")")
                assert "a secret" not in text and reference in log
        with pytest.raises(ProtocolError, match="a secret" if debug else r"\(reference "):
            client.get_prompt("review")


@pytest.mark.parametrize("behind_middleware", [False, True])
@pytest.mark.parametrize("name", ["crash", "crash_soon", "crash_together"])
def test_the_log_has_the_exception_itself(name: str, behind_middleware: bool, caplog: pytest.LogCaptureFixture) -> None:
    app, raised = Server("t"), ValueError("a secret")

    @app.tool
    def crash() -> str:
        raise raised

    @app.tool
    async def crash_soon() -> str:
        await asyncio.sleep(0)
        raise raised

    @app.tool
    def crash_together() -> str:
        group = ValueError("a group")
        group.exceptions = (raised,)  # type: ignore[attr-defined]
        raise group

    if behind_middleware:

        @app.middleware
        async def around(request: Any, next: Any) -> Any:
            return await next(request)

    with SyncClient(app) as client:
        text = client.call_tool(name, raise_on_error=False).text
        logged(caplog)
    (record,) = caplog.records
    reference = text.split("(reference ")[1].rstrip(")")
    advice = "the caller does not see why: raise ToolError(text) to say it, or list the class in expose_errors"
    assert record.getMessage() == f'tool "{name}" failed (reference {reference}); {advice}'
    assert record.exc_info is not None and record.exc_info[1] is raised
    assert caplog.text.count("ValueError: a secret") == 1


def test_the_log_has_the_exception_of_a_notifications_handler(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("t")

    @app.notification("acme/came")
    def came() -> None:
        raise ValueError("a secret")

    with SyncClient(app) as client:
        client.notify("acme/came")
        client.ping()
        logged(caplog)
    (record,) = caplog.records
    assert record.exc_info is not None and "in came" in caplog.text
    assert record.getMessage() == "the handler of a notification failed: ValueError: a secret"


def test_a_result_without_what_its_schema_promises_is_the_servers_fault(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("t")

    @app.tool
    def count() -> int:
        return ToolResult("three")  # type: ignore[return-value]

    @app.tool
    def picture() -> int:
        return Image(b"", format="png")  # type: ignore[return-value]

    @app.tool
    def maybe() -> int | None:
        return ToolResult("none")  # type: ignore[return-value]

    @app.tool
    def text() -> str:
        return ToolResult("three")  # type: ignore[return-value]

    @app.tool
    def broken() -> int:
        return ToolResult("broken", is_error=True)  # type: ignore[return-value]

    with SyncClient(app) as client:
        for name in ("count", "picture"):
            result = client.call_tool(name, raise_on_error=False)
            assert result.is_error and "invalid result" in result.text
            assert "needs structured content" in logged(caplog)
            caplog.clear()
        assert client.call_tool("maybe").structured_content is None
        assert client.call_tool("text").structured_content == "three", "one text is what a text's schema means"
        assert client.call_tool("broken", raise_on_error=False).text == "broken"


def test_strange_exceptions_do_not_break_the_description() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Group(Exception):
        exceptions: tuple[Exception, ...] = (ToolError("inner"),)

    assert "can't be read" in described(Mute())["message"]
    assert described(Group()) == {"kind": "tool", "message": "inner"}
    assert described(ToolError("x", k=object())) == {"kind": "tool", "message": "x"}, "what it carries is left out"
    assert described(KeyboardInterrupt())["type"] == "KeyboardInterrupt"
