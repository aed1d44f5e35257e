"""Exceptions → the description that the core makes an answer of."""

import asyncio
import json
from typing import Any

import pytest

from gudgeon._failures import InvalidArguments, describe_error
from gudgeon._plan import Plan, make_plan
from gudgeon.errors import Cancelled, Declined, ProtocolError, ResourceNotFound, ToolError, UrlElicitationRequired
from gudgeon.types import (
    ElicitRequest,
)

pytestmark = pytest.mark.usefixtures("contexts")


def tool(fn: Any, **options: Any) -> Plan:
    return make_plan("tool", fn, "app", **options)


def call(plan: Plan, /, **arguments: Any) -> Any:
    out = plan.invoke(json.dumps(arguments).encode(), "call")
    return asyncio.run(out) if plan.is_async else out


def described(error: BaseException, *expose: type[Exception]) -> Any:
    return json.loads(describe_error(error, expose))


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
    assert described(Declined("Sure?")) == {"kind": "declined", "message": "The user declined: Sure?"}
    assert described(Cancelled("Sure?")) == {"kind": "declined", "message": "The user declined: Sure?"}
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


def test_strange_exceptions_do_not_break_the_description() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    class Group(Exception):
        exceptions: tuple[Exception, ...] = (ToolError("inner"),)

    assert "can't be read" in described(Mute())["message"]
    assert described(Group()) == {"kind": "tool", "message": "inner"}
    assert described(ToolError("x", k=object()))["kind"] == "exception"
    assert described(KeyboardInterrupt())["type"] == "KeyboardInterrupt"
