"""The fixture server in Python: `server.py [URL…]` listens at these; without any it speaks over stdio."""

import asyncio
import contextlib
import signal
import sys

import asking
import offering
from pixel import PIXEL

from gudgeon import Context, Image, Server, SyncContext, ToolError
from gudgeon.types import ResourceLink

app = Server("interop", version="1.0.0", page_size=7, list_ttl=7)
asking.add_to(app)
offering.add_to(app)
seen = {"cancelled": 0}


@app.tool
def add(a: int, b: int) -> int:
    return a + b


@app.tool
def echo(text: str) -> str:
    return text


@app.tool
def fail() -> str:
    raise ToolError("failed on purpose")


@app.tool
async def slow(ms: int, ctx: Context) -> str:
    try:
        for step in range(1, 5):
            ctx.progress(step, 4)
            await asyncio.sleep(ms / 4000)
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return "done"


@app.tool
def cancelled() -> str:
    return str(seen["cancelled"])


@app.tool
def log(ctx: SyncContext) -> str:
    ctx.debug("too quiet to be heard")
    ctx.info("hello from the tool")
    return "logged"


@app.tool
def picture() -> Image:
    return Image(PIXEL, format="png")


@app.tool
def link() -> ResourceLink:
    return ResourceLink("interop://about", name="about")


@app.tool
def touch() -> str:
    app.notify_updated("interop://about")
    return "touched"


@app.tool(enabled=False)
def sprout() -> str:
    return "here for a moment"


app.prompt(sprout, name="sprout", enabled=False)
app.resource("interop://sprout", enabled=False)(sprout)


@app.tool
def grow() -> str:
    for offers, name in ((app.tools, "sprout"), (app.resources, "interop://sprout"), (app.prompts, "sprout")):
        offers.enable(name)
        offers.disable(name)
    return "grown"


@app.resource("interop://about")
def about() -> str:
    return "A server to test with."


@app.resource("interop://items/{id}")
def item(id: int) -> str:
    return f"item {id}"


@app.prompt
def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.complete("greet", "name")
def names(prefix: str) -> list[str]:
    return [name for name in ("Ada", "Alan", "Grace") if name.startswith(prefix)]


async def listen(urls):
    async with contextlib.AsyncExitStack() as stack:
        for url in urls:
            await stack.enter_async_context(app.listen(url, legacy_sse=url.startswith("http")))
        ended = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
        await ended.wait()


if sys.argv[1:]:
    asyncio.run(listen(sys.argv[1:]))
else:
    app.run()
