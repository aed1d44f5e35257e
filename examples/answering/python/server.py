"""A museum guide: it asks the visitor questions, reports progress, and adds tools while it runs."""

from __future__ import annotations

import sys

from gudgeon import Context, Server, ask

app = Server("museum")  # what clients carry between rounds is sealed with the keys in GUDGEON_STATE_KEYS


@app.tool
async def plan_visit(ctx: Context) -> str:
    """Plan a visit: how long, what the visitor's model recommends, and where the plan is saved."""
    minutes = await ctx.elicit("How many minutes do you have?", int, key="minutes")
    advice, folders = await ctx.ask(
        ask.sample(f"What can one see in {minutes} minutes?", max_tokens=40, models=["fast"]), ask.roots()
    )
    return f"{advice.text} Saved in {folders[0].name}."


@app.tool
async def tour(rooms: int, ctx: Context) -> str:
    """Walk through the museum, room by room."""
    for room in range(1, rooms + 1):
        await ctx.info("entered", room=room)
        await ctx.progress(room, total=rooms, message=f"room {room}")
    return "That was all."


@app.tool
async def open_room(name: str) -> str:
    """Open a room: from now on the museum offers one more tool."""

    async def look() -> str:
        return f"You see {name}."

    app.tool(look, name=f"look_at_{name}")
    return "open"


places: list[str] = []


@app.on_roots_changed
async def moved(ctx: Context) -> None:
    places[:] = [root.uri for root in await ctx.roots()]  # sessions only: later revisions ask when they need it


@app.tool
async def last_place() -> str:
    """The visitor's new address."""
    return " ".join(places)


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
