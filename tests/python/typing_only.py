"""A module with string annotations whose names are imported for type checkers only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

if TYPE_CHECKING:
    from decimal import Decimal

    from nowhere import Db

    import gudgeon as g
    from gudgeon import Context, Context as Ctx, SyncContext


async def plain(text: str, where: Context) -> str:
    return text


async def renamed(c: Ctx) -> None: ...


async def with_arguments(c: Context[Db]) -> None: ...


async def by_module(c: g.Context[Db]) -> None: ...


def sync(c: SyncContext[Db], price: Decimal, note: Annotated[str, "a note"] = "") -> Decimal:
    return price


def wrong(c: Context) -> None: ...


def unknown(x: Nope) -> None: ...  # type: ignore[name-defined]  # noqa: F821
