"""Components that ask the client, in Python."""

import asyncio
import os

from gudgeon import Context, ask
from gudgeon.types import Accepted

PAUSE = 0.15  # seconds; official TypeScript clients lose a notification that is read together with the result
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def reserve() -> int:
    """Something that must not happen twice: who counts finds a line in the ledger for each time."""
    if ledger := os.environ.get("INTEROP_LEDGER"):
        with open(ledger, "a", encoding="utf-8") as file:
            file.write("reserved\n")
    return 7


def add_to(app):
    @app.tool
    async def order(ctx: Context) -> str:
        number = await ctx.step("reserve", reserve)
        name = (await ctx.elicit("What is your name?", NAME))["name"]
        books = 1
        while await ctx.elicit(f"Another book ({books})?", bool):
            books += 1
        return f"{name}: {books} books under {number}"

    @app.tool
    async def whim(message: str, ctx: Context) -> str:
        outcome = await ctx.try_elicit(message, bool)
        return "accepted" if isinstance(outcome, Accepted) else type(outcome).__name__.lower()

    @app.tool
    async def insist(message: str, ctx: Context) -> str:
        return f"accepted: {await ctx.elicit(message, bool)}"

    @app.tool(replay="forbid")
    async def once(ctx: Context) -> str:
        return "more" if await ctx.elicit("Another book (1)?", bool) else "enough"

    @app.tool
    async def deliver(ctx: Context) -> str:
        await ctx.elicit("Another book (1)?", bool)
        ctx.info("on the way")
        ctx.progress(1, 2)
        ctx.progress(2, 2)
        await asyncio.sleep(PAUSE)
        return "delivered"

    @app.tool
    async def sign_in(ctx: Context) -> str:
        await ctx.elicit_url("Please sign in", "https://example.com/in")
        return "on the way"

    @app.tool
    async def capital(ctx: Context) -> str:
        return (await ctx.sample("What is the capital of France?", max_tokens=10)).text

    @app.tool
    async def where(ctx: Context) -> str:
        return ", ".join(root.uri for root in await ctx.roots())

    @app.tool
    async def at_once(ctx: Context) -> str:
        more, capital, roots = await ctx.ask(
            ask.elicit("Another book (1)?", bool),
            ask.sample("What is the capital of France?", max_tokens=10),
            ask.roots(),
        )
        return f"{'more' if more else 'enough'} {capital.text} {roots[0].uri}"

    @app.prompt
    async def letter(ctx: Context) -> str:
        return f"Dear {(await ctx.elicit('What is your name?', NAME))['name']}"

    @app.resource("interop://secret")
    async def secret(ctx: Context) -> str:
        return "told" if await ctx.elicit("Another book (1)?", bool) else "kept"
