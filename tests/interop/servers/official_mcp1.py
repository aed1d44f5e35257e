"""The fixture server on the official Python SDK 1.x over HTTP: `official_mcp1.py streamable-http|sse PORT`."""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP, Image
from mcp.server.fastmcp.exceptions import ToolError
from mcp.types import Completion, PromptReference, ResourceLink, SamplingMessage, TextContent
from pixel import PIXEL
from pydantic import BaseModel

app = FastMCP("interop", port=int(sys.argv[2]))
seen = {"cancelled": 0}


@app.tool()
def add(a: int, b: int) -> int:
    return a + b


@app.tool()
def echo(text: str) -> str:
    return text


@app.tool()
def fail() -> str:
    raise ToolError("failed on purpose")


@app.tool()
async def slow(ms: int, ctx: Context) -> str:
    try:
        for step in range(1, 5):
            await ctx.report_progress(step, 4)
            await asyncio.sleep(ms / 4000)
    except asyncio.CancelledError:
        seen["cancelled"] += 1
        raise
    return "done"


@app.tool()
def cancelled() -> str:
    return str(seen["cancelled"])


@app.tool()
async def log(ctx: Context) -> str:
    await ctx.info("hello from the tool")
    return "logged"


@app.tool()
def picture() -> Image:
    return Image(data=PIXEL, format="png")


@app.tool()
def link() -> ResourceLink:
    return ResourceLink(type="resource_link", uri="interop://about", name="about")


class Name(BaseModel):
    name: str


class Yes(BaseModel):
    value: bool


@app.tool()
async def lend(ctx: Context) -> str:
    name = (await ctx.elicit("What is your name?", Name)).data.name
    another = (await ctx.elicit("Another book (1)?", Yes)).data.value
    return f"{name}: {'more' if another else 'enough'}"


@app.tool()
async def whim(message: str, ctx: Context) -> str:
    return (await ctx.elicit(message, Yes)).action


@app.tool()
async def at_once(ctx: Context) -> str:
    """One after the other: this SDK has a request for each."""
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is the capital of France?"))
    name = (await ctx.elicit("What is your name?", Name)).data.name
    capital = await ctx.session.create_message([question], max_tokens=10, related_request_id=ctx.request_id)
    roots = await ctx.session.list_roots()
    return f"{name} {capital.content.text} {roots.roots[0].uri}"


@app.resource("interop://about")
def about() -> str:
    return "A server to test with."


@app.resource("interop://items/{id}")
def item(id: int) -> str:
    return f"item {id}"


@app.prompt()
def greet(name: str) -> str:
    return f"Hello, {name}!"


@app.completion()
async def names(reference, argument, context):
    if isinstance(reference, PromptReference) and argument.name == "name":
        return Completion(values=[name for name in ("Ada", "Alan", "Grace") if name.startswith(argument.value)])
    return None


app.run(sys.argv[1])
