"""A pizzeria: lifespan, dependencies, timeouts, concurrency limits, middleware, a mounted server."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any

from gudgeon import Context, Depends, Next, Request, Server, SyncContext
from gudgeon.middleware import RateLimit, Timing


@dataclass
class Kitchen:
    free_ovens: int = 1
    baked: int = 0
    busy: int = 0
    busiest: int = 0
    left: list[str] = field(default_factory=list[str])


@asynccontextmanager
async def open_kitchen(server: Server) -> AsyncGenerator[Kitchen]:
    kitchen = Kitchen()
    try:
        yield kitchen  # one for the whole process, as `ctx.lifespan`
    finally:
        print(f"closed after {kitchen.baked} pizzas", file=sys.stderr)


app = Server("pizzeria", lifespan=open_kitchen)


# ── what a handler needs ─────────────────────────────────────────────────────────────────────────────
def oven(ctx: SyncContext[Kitchen]) -> Iterator[Kitchen]:
    """Acquires the oven before the handler runs and releases it afterwards, even if the handler fails."""
    kitchen = ctx.lifespan
    kitchen.free_ovens -= 1
    try:
        yield kitchen
    finally:
        kitchen.free_ovens += 1


@app.tool(tags=["kitchen"])
def bake(pizza: str, kitchen: Annotated[Kitchen, Depends(oven)]) -> str:
    """Bake a pizza. The oven is not an argument of the tool: no client sees it."""
    if pizza == "hawaii":
        raise ValueError("not in this house")
    kitchen.baked += 1
    return f"{pizza}, {kitchen.free_ovens} ovens free"


@app.tool(tags=["kitchen"])
def ovens(ctx: SyncContext[Kitchen]) -> int:
    """The number of free ovens."""
    return ctx.lifespan.free_ovens


# ── how long, how many at once, and what becomes of a guest who leaves ───────────────────────────────
@app.tool(timeout=0.2)
async def sourdough() -> str:
    """Takes a day, which is longer than a call may."""
    await asyncio.sleep(86_400)
    return "risen"


@app.tool(concurrency=1)
async def serve_table(table: int, ctx: Context[Kitchen]) -> str:
    """There is one waiter: tables are served one after the other."""
    kitchen = ctx.lifespan
    kitchen.busy += 1
    kitchen.busiest = max(kitchen.busiest, kitchen.busy)
    await asyncio.sleep(0.01)
    kitchen.busy -= 1
    return f"table {table}, {kitchen.busiest} at once"


@app.tool
async def wait_for_table(name: str, ctx: Context[Kitchen]) -> str:
    """Wait until a table is free, or until the guest has had enough."""
    try:
        ctx.progress(1, message="you are the next")
        await asyncio.sleep(86_400)
    except asyncio.CancelledError:
        ctx.lifespan.left.append(name)
        raise
    return "this way, please"


@app.tool
def who_left(ctx: SyncContext[Kitchen]) -> list[str]:
    """The guests who went away."""
    return ctx.lifespan.left


# ── house rules ──────────────────────────────────────────────────────────────────────────────────────
@app.middleware(on="tools/call")
async def say_grace(request: Request, next: Next) -> Any:
    """Runs around every tool call: it sees the request, and may change, replace or reject the result."""
    request.ctx.state["greeting"] = f"Buongiorno, {request.ctx.client.name}"
    return await next(request)


app.middleware(Timing())  # to the logger "gudgeon.request"
app.middleware(RateLimit(0.01, burst=2, by="server"), on="prompts/get")


@app.tool
def greet(ctx: SyncContext[Kitchen]) -> str:
    """Say what the middleware left for us."""
    return str(ctx.state["greeting"])


@app.prompt
def recipe(pizza: str) -> str:
    """A recipe, of which we give two away and no more."""
    return f"How do I bake a {pizza}?"


@app.tool(visible=lambda who: who is not None and "staff" in who.scopes)
def open_till() -> str:
    """For the staff: nobody else can list or call it."""
    return "cling"


# ── the bar next door, and a method of our own ───────────────────────────────────────────────────────
bar = Server("bar")


@bar.tool
def pour(drink: str) -> str:
    """Pour a drink."""
    return f"a glass of {drink}"


@bar.resource("menu://drinks")
def drinks() -> str:
    return "water, wine"


app.mount("bar", bar)


@app.method("pizzeria/specials")
def specials(day: str = "today") -> dict[str, str]:
    """A vendor's method, for clients that know it."""
    return {day: "quattro stagioni"}


@app.tool
def close_kitchen() -> str:
    """Hide components with the tag "kitchen"."""
    app.tools.disable(tags=["kitchen"])
    return "closed"


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
