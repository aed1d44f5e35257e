"""A server with something for each panel of the inspector: `inspected_server.py [URL]`."""

import asyncio
import base64
import struct
import sys
import zlib
from enum import Enum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from gudgeon import Context, Server
from gudgeon.errors import ToolError
from gudgeon.types import Audio, Image, ResourceLink

app = Server("shelf", title="The shelf", version="1.0", instructions="Ask for books by their **title**.")


REVIEW = """\
## A review

A **good** book, see [its page](https://example.com/book).

- plot
- style

| part | points |
|---|---|
| plot | 4 |
| style | 5 |

```python
print("read it")
```
"""


class Shelf(str, Enum):
    north = "north"
    south = "south"


class Author(Struct):
    name: str
    born: int | None = None


class Paper(Struct, tag="paper"):
    pages: int


class Recording(Struct, tag="recording"):
    minutes: float


class Book(Struct):
    title: Annotated[str, Meta(description="As printed on the cover")]
    authors: list[Author]
    medium: Paper | Recording
    shelf: Shelf = Shelf.south


def png() -> bytes:
    """Return a picture: a green square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + b"\x2a\x9d\x6f" * 48 for _ in range(48))
    head = struct.pack(">IIBBBBB", 48, 48, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def wav() -> bytes:
    """Return a tenth of a second of silence."""
    samples = bytes([128]) * 800
    form = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", len(samples))
    return b"RIFF" + struct.pack("<I", len(form) + len(samples)) + form + samples


@app.tool(annotations={"read_only": True})
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def store(book: Book, copies: int = 1, tags: list[str] | None = None, note: str | None = None) -> dict[str, object]:
    """Put a book on a shelf."""
    return {"title": book.title, "authors": [author.name for author in book.authors], "shelf": book.shelf.value,
            "medium": type(book.medium).__name__, "copies": copies, "tags": tags, "note": note}  # fmt: skip


@app.tool
def measure(data: Annotated[str, Meta(extra_json_schema={"contentEncoding": "base64"})]) -> int:
    """Return the size of a file."""
    return len(base64.b64decode(data))


@app.tool(title="Write a review")
def review(style: Literal["short", "long"] = "short") -> str:
    """Write a review in Markdown."""
    return REVIEW


@app.tool
def cover() -> list[Image | Audio | ResourceLink | str]:
    """Show a cover, and play a sound."""
    return [Image(png(), mime_type="image/png"), Audio(wav(), mime_type="audio/wav"),
            ResourceLink("shelf://about", name="about"), "The cover of the book."]  # fmt: skip


@app.tool
def fail() -> str:
    """Report an error."""
    raise ToolError("the shelf is locked")


@app.tool
async def scan(ctx: Context, seconds: float = 0.5) -> str:
    """Scan the shelf, with progress and log messages."""
    for step in range(5):
        await ctx.progress(step, 5, f"board {step}")
        await ctx.info(f"board {step} has {step * 3} books")
        await asyncio.sleep(seconds / 5)
    return "done"


@app.tool
async def order(ctx: Context) -> str:
    """Ask which book to order."""

    class Order(Struct):
        title: str
        copies: int = 1
        shelf: Shelf = Shelf.north

    answer = await ctx.elicit("Which book shall be ordered?", Order)
    return f"ordered {answer.copies} of {answer.title} for {answer.shelf.value}"


@app.tool
async def pay(ctx: Context) -> str:
    """Send the user to a page."""
    await ctx.elicit_url("Pay for the order.", "https://pay.example.com/orders/7")
    return "paid"


@app.tool
async def summarize(ctx: Context) -> str:
    """Ask a model for a summary."""
    answer = await ctx.sample("Summarize the book.", max_tokens=100)
    return f"summary: {answer.text}"


@app.tool
async def folders(ctx: Context) -> list[str]:
    """List the roots."""
    return [root.uri for root in await ctx.roots()]


@app.tool
async def shelve(ctx: Context, name: str) -> str:
    """Add a tool with this name, and announce an update of the shelf."""

    def added() -> str:
        return name

    app.tool(added, name=name)
    app.notify_updated("shelf://about")
    return "shelved"


@app.tool
def large(mebibytes: float = 16) -> str:
    """Return a long text."""
    return "x" * int(mebibytes * 1024 * 1024 - 1024) + "needle"


@app.resource("shelf://about", title="About the shelf", mime_type="text/markdown")
def about() -> str:
    """Tell about the shelf."""
    return "# The shelf\n\nIt has *two* books."


@app.resource("shelf://books/{title}", mime_type="application/json")
def book(title: str) -> dict[str, str]:
    """Describe a book."""
    return {"title": title}


@app.complete("shelf://books/{title}", "title")
def titles(value: str) -> list[str]:
    return [title for title in ("Emma", "Ulysses", "Ubik") if title.lower().startswith(value.lower())]


@app.prompt(title="Ask for advice")
def recommend(topic: str, tone: str = "plain") -> str:
    """Ask for a book."""
    return f"Recommend a book about {topic} in a {tone} tone."


@app.complete("recommend", "tone")
def tones(value: str) -> list[str]:
    return [tone for tone in ("plain", "polite", "poetic") if tone.startswith(value)]


if __name__ == "__main__":
    app.run(*sys.argv[1:])
