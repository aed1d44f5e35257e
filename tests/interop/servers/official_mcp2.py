"""The fixture server on the official Python SDK 2.x: a modern peer for our clients, and a proof of this harness.

`official_mcp2.py [streamable-http|sse PORT]`
"""

import asyncio
import sys
import warnings
from typing import Annotated

from mcp.server.mcpserver import (
    Context,
    Elicit,
    ElicitationResult,
    Image,
    ListRoots,
    MCPServer,
    Resolve,
    Sample,
)
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    Completion,
    CreateMessageResult,
    ListRootsResult,
    PromptReference,
    ResourceLink,
    SamplingMessage,
    TextContent,
)
from pixel import PIXEL
from pydantic import BaseModel

warnings.simplefilter("ignore")
app = MCPServer("interop", version="1.0.0")
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


def name() -> Elicit[Name]:
    return Elicit("What is your name?", Name)


def another(name: Annotated[Name, Resolve(name)]) -> Elicit[Yes]:
    return Elicit("Another book (1)?", Yes)


def asked(message: str) -> Elicit[Yes]:
    return Elicit(message, Yes)


def model() -> Sample:
    question = SamplingMessage(role="user", content=TextContent(type="text", text="What is the capital of France?"))
    return Sample([question], max_tokens=10)


def host() -> ListRoots:
    return ListRoots()


@app.tool()
def lend(name: Annotated[Name, Resolve(name)], another: Annotated[Yes, Resolve(another)]) -> str:
    return f"{name.name}: {'more' if another.value else 'enough'}"


@app.tool()
def whim(message: str, outcome: Annotated[ElicitationResult[Yes], Resolve(asked)]) -> str:
    return outcome.action


@app.tool()
def at_once(
    name: Annotated[Name, Resolve(name)],
    capital: Annotated[CreateMessageResult, Resolve(model)],
    roots: Annotated[ListRootsResult, Resolve(host)],
) -> str:
    return f"{name.name} {capital.content.text} {roots.roots[0].uri}"


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


if sys.argv[1:]:
    app.run(sys.argv[1], port=int(sys.argv[2]))
else:
    app.run()
