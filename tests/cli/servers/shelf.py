"""A server with tools that answer, fail, and take their time."""

import asyncio

from gudgeon import Context, Server
from gudgeon.errors import ToolError

app = Server("shelf", version="1.0")


@app.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@app.tool
def fail() -> str:
    """Report an error."""
    raise ToolError("the shelf is locked")


@app.tool
async def wait(seconds: float, ctx: Context) -> str:
    """Report progress until the time is over."""
    for step in range(10):
        await ctx.progress(step, 10, f"step {step}")
        await asyncio.sleep(seconds / 10)
    return "done"


@app.resource("shelf://about", mime_type="text/plain")
def about() -> str:
    """Tell about the shelf."""
    return "two books"


@app.prompt
def summarize(title: str) -> str:
    """Ask for a summary of a book."""
    return f"Summarize {title}."


if __name__ == "__main__":
    app.run()
