"""Functions that a program gives are called later: one that takes other arguments is refused when it is given."""

from collections.abc import Callable
from typing import Any

import pytest

from gudgeon import Client, Server
from gudgeon.auth import OAuth


def none() -> Any: ...
def one(value: Any) -> Any: ...
def two(one: Any, two: Any) -> Any: ...


class Called:
    def __call__(self, one: Any, two: Any) -> Any: ...


@pytest.mark.parametrize(
    "make, told",
    [
        (lambda: Server("s", auth=lambda token: None), r"takes \(token\), but is called with \(token, request\)"),
        (lambda: Server("s", auth=[lambda: None]), r"the function of auth= takes \(\), but is"),
        (
            lambda: Server("s", lifespan=none),
            r"the function of lifespan= takes \(\) -> Any, but is called with \(server\)",
        ),
        (lambda: Server("s").asgi(principal=two), r"principal= takes .*, but is called with \(request\)"),
        (lambda: Client(Server("s"), on_elicit=two), r"on_elicit= takes .*, but is called with \(value\)"),
        (lambda: Client(Server("s"), on_log=Called()), r"on_log= takes .*, but is called with \(value\)"),
        (lambda: Client(Server("s"), roots=one), r"roots= takes .*, but is called with \(\)"),
        (lambda: Client(Server("s"), middleware=[one]), r"middleware= takes .*, but is called with \(request, next\)"),
        (lambda: Client("http://localhost:1/mcp", auth=one), r"auth= takes .*, but is called with \(\)"),
        (lambda: OAuth(open_url=two), r"open_url= takes .*, but is called with \(url\)"),
    ],
)
def test_a_function_with_other_arguments_is_refused(make: Callable[[], Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        make()


def test_a_function_may_have_any_signature_that_fits() -> None:
    def with_default(token: str, request: Any, more: int = 1) -> Any: ...

    for fits in (two, with_default, lambda *given: None, Called(), Called().__call__):
        Server("s", auth=fits)
    for callback in (one, print, lambda value, *, more=1: None):
        Client(Server("s"), on_log=callback)


@pytest.mark.parametrize("name", ["", " "])
def test_a_server_has_a_name(name: str) -> None:
    with pytest.raises(ValueError, match="a server's name must not be empty"):
        Server(name)
