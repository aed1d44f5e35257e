"""A server that counts its calls, asks questions, and serves any era: `shop.py [revision…]`."""

import os
import sys

from gudgeon import Server, SyncContext, ToolError

app = Server("shop", version="2.0")
calls = 0


@app.tool
def count() -> int:
    """Count the calls of this process."""
    global calls
    calls += 1
    return calls


@app.tool
def process() -> int:
    """Return the id of the process."""
    return os.getpid()


@app.tool
def refuse() -> str:
    """Report an error."""
    raise ToolError("the shop is closed")


@app.tool
def order(title: str, ctx: SyncContext) -> str:
    """Ask for the number of copies, then for a confirmation."""
    copies = ctx.elicit(f"How many copies of {title}?", int)
    sure = ctx.elicit(f"Order {copies}?", bool)
    return f"ordered {copies} of {title}" if sure else "ordered nothing"


@app.tool
def pack(ctx: SyncContext) -> str:
    """Ask, and report what happens after the answer."""
    ctx.info("found a box")
    wrap = ctx.elicit("Wrap it?", bool)
    ctx.progress(1, 2, "wrapping")
    ctx.warning("the box is small")
    return "wrapped" if wrap else "bare"


@app.tool
def variable(name: str) -> str:
    """Return an environment variable of the server."""
    return os.environ.get(name, "unset")


@app.tool
def summarize(text: str, ctx: SyncContext) -> str:
    """Ask a model for a summary."""
    answer = ctx.sample(f"Summarize {text}", max_tokens=100)
    return f"summary: {answer.text}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        app.run(sys.argv[1])
    else:
        app.run()
