"""A server with tools that answer, fail, and take their time."""

import time

from gudgeon import Server, SyncContext
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
def wait(seconds: float, ctx: SyncContext) -> str:
    """Report progress until the time is over."""
    start = time.monotonic()
    for step in range(10):
        ctx.progress(step, 10, f"step {step}")
        while time.monotonic() < start + seconds * (step + 1) / 10 and not ctx.cancelled:
            time.sleep(0.001)
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
