"""Checks that functions which a program gives can be called with the arguments that they will get."""

from __future__ import annotations

from typing import Any


def check_takes(function: Any, arguments: str, what: str) -> None:
    """Checks a function by its signature.

    Args:
        function: A callable. One without a signature, such as those written in C, is not checked.
        arguments: The names of its arguments, separated by commas; "" for none.
        what: The function, as the message names it.

    Raises:
        TypeError: It takes another number of arguments.

    >>> check_takes(lambda token, request: None, "token, request", "auth=")
    >>> check_takes(lambda token: None, "token, request", "the function of auth=")
    Traceback (most recent call last):
    TypeError: the function of auth= takes (token), but is called with (token, request)
    """
    count = len(arguments.split(",")) if arguments else 0
    if _certainly_takes(function, count):
        return
    # Slow to import.
    import inspect

    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*[None] * count)
    except TypeError:
        raise TypeError(f"{what} takes {signature}, but is called with ({arguments})") from None


def _certainly_takes(function: Any, count: int) -> bool:
    """Returns whether a plain function takes this number of arguments, without looking at others."""
    code = getattr(function, "__code__", None)
    if code is None or code.co_kwonlyargcount or hasattr(function, "__wrapped__"):
        return False
    optional = len(getattr(function, "__defaults__", None) or ())
    return bool(code.co_argcount - optional <= count <= code.co_argcount)
