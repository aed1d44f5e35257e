"""Gudgeon for the bench of growth: scale.py stdio|URL [options as JSON].

The options are `tools`, the number of tools, and the options `server` and `http`. Without `tools` the server has `echo`
and the tools of `add_helpers`.
"""

import asyncio
import gc
import json
import sys

from gudgeon import Server

place, *words = sys.argv[1:]
given = json.loads(words[0]) if words else {}
app = Server("scale", **given.get("server", {}))
changes = 0
waiting = []


def search(query: str, limit: int = 10) -> str:
    """Searches the collection.

    Args:
        query: The words to search for.
        limit: The number of results.
    """
    return query[:limit]


def add_helpers():
    """Registers the tools for waiting, changes and memory."""

    @app.tool
    async def meet(count: int) -> str:
        """Waits until `count` calls are waiting."""
        done = asyncio.get_running_loop().create_future()
        waiting.append(done)
        if len(waiting) == count:
            for one in waiting:
                one.set_result(None)
            waiting.clear()
        await done
        return "met"

    @app.tool
    async def count_waiting() -> int:
        return len(waiting)

    @app.tool
    def change() -> str:
        """Changes the list of tools."""
        global changes
        changes += 1
        app.tools.update("change", meta={"changes": changes})
        return "changed"

    @app.tool
    def collect() -> int:
        return gc.collect()


if "tools" in given:
    for number in range(given["tools"] - 1):
        app.tool(search, name=f"search_{number}")
else:
    add_helpers()


@app.tool
def echo(text: str) -> str:
    return text


if place == "stdio":
    app.run()
else:
    app.run(place, **given.get("http", {}))
