"""A server with content of every kind, questions, log messages, and control characters in its texts."""

import base64
import os
import sys
import time
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Literal

from gudgeon import Audio, EmbeddedResource, Image, ResourceLink, Server, SyncContext, ToolResult
from gudgeon.errors import ToolError

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
# Clears a terminal, sets its title, and reverses what follows.
EVIL = "\x1b[2J\x1b]0;owned\x07\u202eevil\x9b31m"

app = Server("desk", version="2.0")


class Color(Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Order:
    name: str
    count: int = 1
    color: Color = Color.RED


@app.tool(annotations={"readOnlyHint": True})
def search(
    title: Annotated[str, "A part of the title"],
    limit: Annotated[int, "The most results"] = 10,
    tags: list[str] | None = None,
    sort: Literal["title", "year"] = "title",
    exact: bool = False,
    price: float | None = None,
) -> dict[str, object]:
    """Find books. The search is not sensitive to case."""
    return {"title": title, "limit": limit, "tags": tags, "sort": sort, "exact": exact, "price": price}


@app.tool
def pictures() -> list[str | Image | Audio | ResourceLink | EmbeddedResource]:
    """Show content of every kind."""
    return [
        "A picture:",
        Image(PIXEL, format="png"),
        Audio(b"RIFFdata", format="wav"),
        ResourceLink("desk://lamp", name="lamp", mime_type="text/plain"),
        EmbeddedResource("desk://note", text="remember the milk", mime_type="text/plain"),
        EmbeddedResource("desk://raw/data.bin", blob=b"\x00\x01\x02"),
    ]


@app.tool
def only_data() -> ToolResult[object]:
    """Return structured content without a text."""
    return ToolResult([], structured_content={"books": [{"title": "Emma", "year": 1815}]})


@app.tool
def evil() -> str:
    """Say something in control characters."""
    return f"before {EVIL} after"


@app.tool
def evil_error() -> str:
    """Fail in control characters."""
    raise ToolError(f"failed {EVIL}")


@app.tool(description=f"Described {EVIL}")
def evil_description() -> None:
    return None


@app.tool
def order(ctx: SyncContext) -> str:
    """Ask for an order."""
    answer = ctx.elicit("What shall it be?", Order)
    return f"{answer.count} {answer.color.value} {answer.name}"


@app.tool
def confirm(ctx: SyncContext) -> str:
    """Ask for a yes."""
    return "yes" if ctx.elicit("Really?", bool) else "no"


@app.tool
def visit(ctx: SyncContext) -> str:
    """Ask to visit a page."""
    ctx.elicit_url("Sign in at the desk", "https://desk.example/sign-in?code=42")
    return "visited"


@app.tool
def think(ctx: SyncContext) -> str:
    """Ask the model."""
    return (ctx.sample("What is the capital of France?", max_tokens=9)).text


@app.tool
def where(ctx: SyncContext) -> list[str]:
    """List the roots."""
    return [root.uri for root in ctx.roots()]


@app.tool
def log(ctx: SyncContext) -> str:
    """Send a log message of each kind."""
    ctx.debug("found the desk")
    ctx.info("opened a drawer")
    ctx.warning(f"it is {EVIL}")
    return "logged"


@app.tool
def work(ctx: SyncContext, path: str, seconds: float = 600) -> str:
    """Write to a file that it began, and how it ended."""

    def record(text: str) -> None:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    ctx.progress(1, 4, f"at work {EVIL}")
    record("begun")
    end = time.monotonic() + seconds
    while time.monotonic() < end and not ctx.cancelled:
        time.sleep(0.01)
    record("cancelled" if ctx.cancelled else "done")
    return "done"


@app.tool
def grow() -> str:
    """Change the list of tools, and update the lamp."""
    app.tool(lambda: "new", name=f"new{os.urandom(4).hex()}")
    app.notify_updated("desk://lamp")
    return "grown"


@app.resource("desk://lamp", mime_type="text/plain")
def lamp() -> str:
    """The lamp on the desk."""
    return "lit\n"


@app.resource("desk://pixel.png", mime_type="image/png")
def pixel() -> bytes:
    """A picture of one pixel."""
    return PIXEL


@app.resource("desk://drawers/{number}/{name}")
def drawer(number: int, name: str) -> str:
    """The content of a drawer."""
    return f"{name} in drawer {number}"


@app.prompt
def review(code: str, tone: Annotated[str, "The tone of the review"] = "friendly") -> str:
    """Ask for a review."""
    return f"Review this in a {tone} tone: {code}"


@app.complete("review", "tone")
def tones(value: str, context: dict[str, str]) -> list[str]:
    tones = ["friendly", "frank", context.get("code", "formal")]
    return [tone for tone in tones if tone.startswith(value)]


if __name__ == "__main__":
    app.run(*sys.argv[1:])
