"""A server whose tools ask their client, and tell what happened to them: imported by tests, or run with its options."""

import asyncio
import json
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gudgeon import Context, Server, SyncContext, ask
from gudgeon.errors import Declined


@dataclass
class Ticket:
    number: int
    seats: tuple[str, ...]


def make(**options: Any) -> Server[Any]:
    app: Server[Any] = Server("asks", **options)
    happened: list[str] = []
    release = asyncio.Event()

    @app.tool
    def events() -> list[str]:
        return happened

    @app.tool
    def threads() -> int:
        tasks = Path("/proc/self/task")
        return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()

    async def order(ctx: Context) -> str:
        happened.append("begun")
        try:
            name = await ctx.elicit("Name?", str)
            colour = await ctx.elicit("Colour?", str)
        except BaseException as error:
            happened.append(f"left by {type(error).__name__}")
            raise
        return f"{name} likes {colour}"

    def order_sync(ctx: SyncContext) -> str:
        happened.append("begun")
        try:
            name = ctx.elicit("Name?", str)
            colour = ctx.elicit("Colour?", str)
        except Exception as error:  # what unwinds it must pass
            return repr(error)
        except BaseException as error:
            happened.append(f"left by {type(error).__name__}")
            raise
        return f"{name} likes {colour}"

    for form, fn in (("order", order), ("order_sync", order_sync)):
        app.tool(fn, name=form)
        app.tool(fn, name=f"{form}_once", replay="forbid")
    app.tool(order_sync, name="order_in_place", thread=False)
    app.tool(order_sync, name="order_on_worker", thread=True)

    @app.tool
    async def gathered(ctx: Context) -> str:
        async def both() -> tuple[str, int]:
            return await ctx.ask(ask.elicit("Name?", str), ask.elicit("Age?", int))

        colour = asyncio.create_task(one(ctx))
        (name, age), likes, place = await asyncio.gather(both(), ctx.elicit("Likes?", bool), ctx.elicit("Place?", str))
        return f"{name} {age} {likes} {place} {await colour}"

    async def one(ctx: Context) -> str:
        return await ctx.elicit("Colour?", str)

    @app.tool
    def several(ctx: SyncContext) -> str:
        name, age = ctx.ask(ask.elicit("Name?", str), ask.elicit("Age?", int))
        return f"{name} {age}"

    @app.tool
    async def attempt(ctx: Context) -> str:
        return repr(await ctx.try_elicit("Sure?", bool))

    @app.tool
    def attempt_sync(ctx: SyncContext) -> str:
        return repr(ctx.try_elicit("Sure?", bool))

    def issue(number: int) -> Ticket:
        happened.append("issued")
        return Ticket(number, ("a", "b"))

    async def issue_later(number: int) -> Ticket:
        return issue(number)

    @app.tool
    async def book(ctx: Context, number: int) -> str:
        ticket = await ctx.step("issue", issue_later, number)
        sure = await ctx.elicit("Sure?", bool)
        again = await ctx.step("issue", issue, 99)
        return f"{ticket!r} {sure} {again == ticket}"

    @app.tool
    def book_sync(ctx: SyncContext, number: int) -> str:
        ticket = ctx.step("issue", issue, number)
        sure = ctx.elicit("Sure?", bool)
        again = ctx.step("issue", issue, 99)
        return f"{ticket!r} {sure} {again == ticket}"

    @app.tool
    async def facts(ctx: Context) -> list[Any]:
        seen = [ctx.request_id, ctx.meta.get("mark"), ctx.headers.get("x-mark")]
        await ctx.elicit("Sure?", bool)
        await ctx.progress(1, message="sure")
        return [*seen, ctx.request_id, ctx.meta.get("mark"), ctx.headers.get("x-mark")]

    @app.tool
    async def held(ctx: Context) -> str:
        happened.append("begun")
        sure = await ctx.elicit("Sure?", bool)
        await release.wait()
        happened.append("done")
        return str(sure)

    @app.tool
    async def impatient(ctx: Context) -> str:
        asking = asyncio.create_task(one(ctx))
        await release.wait()
        asking.cancel()
        return "went on"

    @app.tool
    async def let_go() -> None:
        release.set()

    @app.prompt
    async def greet(ctx: Context) -> str:
        happened.append("begun")
        return f"Greet {await ctx.elicit('Name?', str)}."

    @app.prompt
    def greet_sync(ctx: SyncContext) -> str:
        return f"Greet {ctx.elicit('Name?', str)}."

    @app.resource("asks://name")
    async def name(ctx: Context) -> str:
        return await ctx.elicit("Name?", str)

    @app.resource("asks://colours/{shade}")
    def colour(shade: str, ctx: SyncContext) -> str:
        try:
            return f"{shade} {ctx.elicit('Colour?', str)}"
        except Declined:
            return "none"

    return app


if __name__ == "__main__":
    make(**json.loads(sys.argv[1])).run()
