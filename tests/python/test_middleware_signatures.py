"""The signatures of middleware, and their refusal at registration."""

from typing import Any

import pytest

from eventually import eventually
from gudgeon import Server
from gudgeon.middleware import ResponseLimit
from gudgeon.testing import connect_sync


def shelf() -> Server[Any]:
    app = Server("shelf")

    @app.tool
    def open(title: str) -> str:
        """Opens a book."""
        return f"open {title}"

    return app


async def takes_one(request: Any) -> Any: ...
async def takes_three(request: Any, next: Any, more: Any) -> Any: ...
async def yields(request: Any, next: Any) -> Any:
    yield await next(request)


class Guard:
    async def __call__(self, context: Any) -> Any: ...


@pytest.mark.parametrize(
    "wrong, told",
    [
        (
            takes_one,
            r"^'takes_one' \(test_middleware_signatures\.py:\d+\) takes \(request: Any\) -> Any, but is called ",
        ),
        (takes_three, r"'takes_three' .* but is called with \(request, next\)"),
        (yields, r"'yields' .* is a generator; middleware is an async function \(request, next\) that returns"),
        (Guard(), r"takes \(context: Any\) -> Any, but is called with \(request, next\)"),
        (ResponseLimit, r"not a class; give an instance: ResponseLimit\(…\)"),
        (5, r"middleware is an async function \(request, next\), not int"),
    ],
)
def test_middleware_with_another_signature_is_refused_at_registration(wrong: Any, told: str) -> None:
    app = shelf()
    with pytest.raises(TypeError, match=told):
        app.middleware(wrong)
    with pytest.raises(TypeError, match=told):
        app.middleware(on="tools/call")(wrong)
    assert app._middleware == []


def test_middleware_may_have_any_signature_that_fits() -> None:
    app = shelf()

    async def with_default(request: Any, next: Any, more: int = 1) -> Any:
        return await next(request)

    for fits in (with_default, lambda *given: given[1](given[0]), ResponseLimit(10_000)):
        app.middleware(fits)
    with connect_sync(app) as client:
        assert client.call_tool("open", {"title": "Emma"}).text == "open Emma"


def test_a_def_that_is_no_middleware_is_named_with_the_fix(caplog: pytest.LogCaptureFixture) -> None:
    app = shelf()

    @app.middleware(on="tools/call")
    def at_once(request: Any, next: Any) -> Any:
        return {}

    with connect_sync(app) as client:
        assert client.call_tool("open", {"title": "Emma"}, raise_on_error=False).is_error
    eventually(lambda: "returned a dict; declare it with async def" in caplog.text)
    assert "'test_a_def_that" not in caplog.text and "'at_once' (test_middleware_signatures.py:" in caplog.text
