"""What stands in `Annotated[…]` beside a parameter's type."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Header:
    """`Annotated[str, Header("Region")]`: the client mirrors this argument in `Mcp-Param-Region`."""

    def __init__(self, name: str, /) -> None:
        if not name or not all(char.isascii() and (char.isalnum() or char in "!#$%&'*+-.^_`|~") for char in name):
            raise ValueError(f"Header({name!r}) is no HTTP field name: use letters, digits and dashes")
        self.name = name

    def __repr__(self) -> str:
        return f"Header({self.name!r})"


class Depends:
    """`Annotated[Db, Depends(get_db)]`: the server calls `get_db` and hands over what it gives."""

    def __init__(self, provider: Callable[..., Any], /, *, cached: bool = True) -> None:
        if not callable(provider):
            raise TypeError(f"Depends takes a function that provides the value, not {type(provider).__name__}")
        self.provider = provider
        self.cached = cached

    def __repr__(self) -> str:
        return f"Depends({getattr(self.provider, '__qualname__', self.provider)!s})"
