"""Dependencies: made once a call, cleaned up after it, replaced in tests."""

from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any

import pytest

from gudgeon._plan.depends import Overrides
from gudgeon._schema.markers import Depends
from gudgeon.errors import ToolError
from plans import call, tool

pytestmark = pytest.mark.usefixtures("contexts")


def test_dependencies_are_made_once_and_cleaned_up(contexts: Any) -> None:
    SyncContext = contexts.SyncContext
    log: list[str] = []

    def get_db(ctx: SyncContext) -> Iterator[str]:  # type: ignore[valid-type]
        log.append("open")
        try:
            yield f"db of {ctx.app}"  # type: ignore[attr-defined]
        except ToolError:
            log.append("saw the error")
            raise
        finally:
            log.append("close")

    def get_table(db: Annotated[str, Depends(get_db)], size: int = 3) -> str:
        return f"{db}[{size}]"

    def fresh() -> object:
        return object()

    def f(
        n: int,
        db: Annotated[str, Depends(get_db)],
        table: Annotated[str, Depends(get_table)],
        a: Annotated[object, Depends(fresh, cached=False)],
        b: Annotated[object, Depends(fresh, cached=False)],
    ) -> str:
        log.append("call")
        if n == 0:
            raise ToolError("zero")
        return f"{db} {table} {a is b}"

    overrides = Overrides()
    plan = tool(f, overrides=overrides)
    assert list(plan.parameters) == ["n"]
    assert call(plan, n=1) == "db of app db of app[3] False"
    assert log == ["open", "call", "close"]
    log.clear()
    with pytest.raises(ToolError):
        call(plan, n=0)
    assert log == ["open", "call", "saw the error", "close"]
    with overrides.override(get_db, lambda: iter(["fake"])):
        assert call(plan, n=1).startswith("fake fake[3]")
        with overrides.override(get_db, lambda: "plain"):
            assert call(plan, n=1).startswith("plain")
        assert call(plan, n=1).startswith("fake")
    assert call(plan, n=1).startswith("db of app")


def test_async_dependencies(contexts: Any) -> None:
    Context = contexts.Context
    log: list[str] = []

    async def get_db(ctx: Context) -> AsyncIterator[str]:  # type: ignore[valid-type]
        yield "db"
        log.append("close")

    async def get_user() -> str:
        return "ann"

    def get_both(db: Annotated[str, Depends(get_db)], who: Annotated[str, Depends(get_user)]) -> Iterator[str]:
        yield f"{db} {who}"
        log.append("close both")

    async def f(both: Annotated[str, Depends(get_both)]) -> str:
        return both

    def g(both: Annotated[str, Depends(get_both)]) -> str:
        return both

    overrides = Overrides()
    plan = tool(f, overrides=overrides)
    assert call(plan) == "db ann"
    assert log == ["close both", "close"]
    with pytest.raises(
        TypeError, match="'both' of .*'g'.* depends on .*'get_both'.* which is async: write async def g"
    ):
        tool(g)

    async def fake() -> str:
        return "async"

    def sync_db() -> str:
        return "x"

    def h(db: Annotated[str, Depends(sync_db)]) -> str:
        return db

    with (
        overrides.override(sync_db, fake),
        pytest.raises(TypeError, match="'fake'.* is async, but replaces a dependency"),
    ):
        call(tool(h, overrides=overrides))


def test_misuse_of_dependencies() -> None:
    def needs(x: int) -> int:
        return x

    def f(a: Annotated[int, Depends(needs)]) -> int:
        return a

    with pytest.raises(TypeError, match="parameter 'x' of the dependency .*'needs'.* can't be filled in"):
        tool(f)

    def silent() -> Iterator[int]:
        return
        yield

    def g(a: Annotated[int, Depends(silent)]) -> int:
        return a

    with pytest.raises(RuntimeError, match="'silent'.* yielded nothing"):
        call(tool(g))


def test_results_are_encoded_before_the_dependency_is_closed() -> None:
    rows: list[int] = [1, 2]

    def get_rows() -> Iterator[list[int]]:
        yield rows
        rows.clear()

    def f(rows: Annotated[list[int], Depends(get_rows)]) -> list[int]:
        return rows

    assert call(tool(f)) == b"[1,2]"
    assert rows == []
