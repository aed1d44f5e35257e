"""Markers for `Annotated[…]`, beside a parameter's type."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Header:
    """`Annotated[str, Header("Region")]`: HTTP clients repeat this argument in the header `Mcp-Param-Region`.

    It marks a tool's parameter of the type str, int or bool, or such a field of a dataclass, TypedDict, msgspec.Struct
    or pydantic model that is a parameter's type. Inside a list, a union or an optional type it is refused at
    registration; anywhere else it has no effect.

    Args:
        name: An HTTP field name: letters, digits and dashes.

    Raises:
        ValueError: The name is not an HTTP field name.

    Spec: Base Protocol › Transports › Streamable HTTP (2026-07-28), `x-mcp-header`.
    """

    def __init__(self, name: str) -> None:
        if not name or not all(char.isascii() and (char.isalnum() or char in "!#$%&'*+-.^_`|~") for char in name):
            raise ValueError(f"Header({name!r}) is not an HTTP field name; use letters, digits and dashes")
        self.name = name

    def __repr__(self) -> str:
        return f"Header({self.name!r})"

    def __get_pydantic_json_schema__(self, core_schema: Any, handler: Any) -> dict[str, Any]:
        return {**handler(core_schema), "x-mcp-header": self.name}


class Depends:
    """`Annotated[Db, Depends(get_db)]`: the server calls `get_db` for the argument; clients don't see the parameter.

    Args:
        provider: A function, async or not, or a generator that cleans up after the call; it may have a context and
            dependencies of its own.
        cached: Calls it once per call, for all parameters that name it. Default True.

    Raises:
        TypeError: The provider is not callable.

    >>> from typing import Annotated
    >>> from gudgeon import Depends, Server, SyncClient
    >>> app = Server("shelf")
    >>> def stock() -> list[str]:
    ...     return ["Dune"]
    >>> @app.tool
    ... def count(books: Annotated[list[str], Depends(stock)]) -> int:
    ...     return len(books)
    >>> with app.override(stock, lambda: ["Dune", "Emma"]), SyncClient(app) as client:
    ...     client.call_tool("count").data
    2
    """

    def __init__(self, provider: Callable[..., Any], *, cached: bool = True) -> None:
        if not callable(provider):
            raise TypeError(f"Depends takes a function that provides the value, not {type(provider).__name__}")
        self.provider = provider
        self.cached = cached

    def __repr__(self) -> str:
        return f"Depends({getattr(self.provider, '__qualname__', self.provider)!s})"
