"""A bakery whose tools, resources and prompts change while clients are connected."""

from __future__ import annotations

import sys

from gudgeon import Server, ToolError

app = Server("bakery")
counter: dict[str, int] = {"rye": 3}


@app.resource("bakery://counter", mime_type="application/json")
def on_the_counter() -> dict[str, int]:
    return counter


@app.prompt
def praise() -> str:
    """A server reports changes only of the lists that it has from the start: tools, resources, prompts."""
    return "Praise our rye."


@app.tool(tags=["oven"])
def bake(bread: str, loaves: int) -> str:
    """Bake some loaves and put them on the counter."""
    counter[bread] = counter.get(bread, 0) + loaves
    app.notify_updated("bakery://counter")  # sent to the clients that subscribed to this URI
    return f"{counter[bread]} {bread}"


@app.tool
def sell(bread: str) -> str:
    """Sell a loaf."""
    if not counter.get(bread):
        raise ToolError(f"No {bread} is left.")
    counter[bread] -= 1
    app.notify_updated("bakery://counter")
    return f"{counter[bread]} {bread}"


@app.tool
def close_oven() -> str:
    """End of the baking: every tool that needs the oven goes."""
    app.tools.disable(tags=["oven"])  # clients are notified of changed components
    return "cold"


@app.tool
def light_oven() -> str:
    """The tools that need the oven come back."""
    app.tools.enable(tags=["oven"])
    return "hot"


@app.tool
def new_recipe(bread: str) -> str:
    """Add a tool, a resource and a prompt for one more kind of bread."""
    if f"slice_{bread}" in app.tools:
        raise ToolError(f"There is {bread} already.")
    app.tool(lambda: f"sliced {bread}", name=f"slice_{bread}")
    app.resource(f"bakery://recipes/{bread}", name=bread)(lambda: f"Flour, water, and what makes it {bread}.")
    app.prompt(lambda: f"Praise our {bread}.", name=f"praise_{bread}")
    return "written down"


@app.tool
def forget_recipe(bread: str) -> str:
    """Remove them again."""
    app.tools.remove(f"slice_{bread}")
    app.resources.remove(f"bakery://recipes/{bread}")
    app.prompts.remove(f"praise_{bread}")
    return "forgotten"


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
