"""The fixture server of the transcripts in Python. `server.py 4096` serves with that `max_message`,
`server.py --dialects 0.7,bare` in these, too."""

import asyncio
import sys
from typing import Any, TypedDict

from gudgeon import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    Other,
    ProtocolError,
    ResourceLink,
    ResourceNotFound,
    Server,
    SyncContext,
    ToolError,
    ask,
)

options: Any = {}
match sys.argv[1:]:
    case ["--dialects", names]:
        options["dialects"] = names.split(",")
    case [limit]:
        options["max_message"] = int(limit)
app = Server("fixture", version="1.0", instructions="Ask the fixture.", page_size=100, **options)


class Book(TypedDict):
    id: int
    title: str


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def echo(text: str):
    """Say it again."""
    return text


@app.tool
def book(id: int) -> Book:
    """Find a book."""
    return {"id": id, "title": "Dune"}


@app.tool
def content():
    """Every kind of content."""
    return [
        "Here",
        Image(b"PNG", format="png"),
        Audio(b"WAV", format="wav"),
        EmbeddedResource("fixture://about", text="About.", mime_type="text/plain"),
        ResourceLink("fixture://about", name="about"),
    ]


@app.tool
def custom() -> Other:
    """Content of its own kind."""
    return Other({"type": "acme/thing", "data": [1]})


@app.tool
def fail(message: str):
    """Fail."""
    raise ToolError(message)


@app.tool
def crash():
    """Crash."""
    raise RuntimeError("a secret")


@app.tool
def refuse():
    """Refuse."""
    raise ProtocolError(1234, "Refused.", {"why": "because"})


@app.tool
def count(steps: int, ctx: SyncContext):
    """Count."""
    for step in range(1, steps + 1):
        ctx.progress(step, steps, f"step {step}")
    return "done"


@app.tool
async def say(level: str, text: str, ctx: Context):
    """Log."""
    await ctx.log(level, text, logger="fixture")
    return "said"


@app.tool
async def wait():
    """Wait."""
    await asyncio.Event().wait()


@app.tool
async def confirm(ctx: Context):
    """Ask first."""
    return "yes" if await ctx.elicit("Sure?", bool) else "no"


@app.tool
def dream(prompt: str, ctx: SyncContext):
    """Ask the model."""
    return ctx.sample(prompt, max_tokens=100).text


@app.tool
async def places(ctx: Context):
    """Ask for the roots."""
    return ", ".join(root.uri for root in await ctx.roots())


@app.tool
def interview(ctx: SyncContext):
    """Ask twice."""
    name, colour = ask.elicit("Who?", str, key="name"), ask.elicit("Colour?", str, key="colour")
    for question in (name, colour):
        if ctx.answer(question) is None:
            return question
    return f"{ctx.answer(name)} likes {ctx.answer(colour)}"


@app.tool(enabled=False)
def hidden():
    """Hidden."""


@app.resource("fixture://about", mime_type="text/plain")
def about() -> str:
    """About the fixture."""
    return "About."


@app.resource("fixture://bytes", name="bytes")
def three_bytes() -> bytes:
    return bytes([0, 1, 2])


@app.resource("fixture://items/{id}")
def items(id: int) -> dict[str, int]:
    """An item."""
    if id == 404:
        raise ResourceNotFound("fixture://items/404")
    return {"id": id}


if "dialects" in options:

    @app.resource("fixture://search{?q,limit}")
    def search(q: str, limit: int = 10) -> dict[str, Any]:
        """Search."""
        return {"q": q, "limit": limit}


@app.prompt
def greet(name: str, style: str = "warm") -> str:
    """Greet somebody."""
    return f"Greet {name}, {style}."


@app.complete("greet", "name")
def names(prefix: str) -> list[str]:
    return [name for name in ("Ada", "Alan") if name.startswith(prefix)]


@app.on_roots_changed
async def roots_changed(ctx: Context) -> None:
    await ctx.log("info", ", ".join(root.uri for root in await ctx.roots()), logger="fixture")


@app.method("acme/echo")
def acme_echo(text: str) -> dict[str, str]:
    return {"echo": text}


app.run()
