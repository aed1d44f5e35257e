"""A server in which everything fails, in Python."""

import asyncio
import sys
from typing import Annotated, Any

from gudgeon import (
    Context,
    ProtocolError,
    ResourceNotFound,
    Server,
    SyncContext,
    ToolError,
    ask,
)

app = Server("failures", version="1.0")


@app.tool
def tool_error() -> str:
    raise ToolError("the shelf is full", shelf=12)


@app.tool
def crash() -> str:
    raise ValueError("a secret")


@app.tool(expose_errors=(LookupError,))
def exposed() -> str:
    raise LookupError("no such book")


@app.tool
def refused() -> str:
    raise ProtocolError(1234, "Refused.", {"why": "because"})


@app.tool
def missing() -> str:
    raise ResourceNotFound("failures://gone")


@app.tool
async def sure(ctx: Context) -> str:
    return str(await ctx.elicit("Sure?", bool))


@app.tool
def sure_sync(ctx: SyncContext) -> str:
    return str(ctx.elicit("Sure?", bool))


@app.tool
async def dream(ctx: Context) -> str:
    return (await ctx.sample("Dream.", max_tokens=10)).text


@app.tool
async def places(ctx: Context) -> str:
    return str(await ctx.roots())


@app.tool
async def page(ctx: Context) -> str:
    return await ctx.elicit_url("Sign in", "https://example.com/in")


@app.tool(timeout=0.05)
async def slow() -> str:
    await asyncio.sleep(60)
    return "done"


@app.tool(output={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})
def wrong() -> Any:
    return {"n": "three"}


@app.tool(replay="forbid")
def forbids() -> Any:
    return ask.elicit("Sure?", bool)


@app.tool
def unsaid() -> Any:
    return {"mean": float("nan")}


@app.tool
def laden() -> str:
    raise ToolError("the scale is broken", weight=float("inf"))


@app.tool
def typed(count: int, names: list[str], level: Annotated[float, "How high."] = 1.0, wide: bool = False) -> str:
    return "ok"


@app.tool
def kept(ctx: SyncContext) -> str:
    ctx.session["n"] = 1
    return "kept"


@app.prompt
def p_tool_error() -> str:
    raise ToolError("the shelf is full")


@app.prompt
def p_crash() -> str:
    raise ValueError("a secret")


@app.prompt
def p_refused() -> str:
    raise ProtocolError(1234, "Refused.", {"why": "because"})


@app.prompt
async def p_sure(ctx: Context) -> str:
    return str(await ctx.elicit("Sure?", bool))


@app.prompt(timeout=0.05)
async def p_slow() -> str:
    await asyncio.sleep(60)
    return "done"


@app.prompt
def p_typed(name: str, count: int = 1) -> str:
    return name * count


@app.resource("failures://tool_error")
def r_tool_error() -> str:
    raise ToolError("the shelf is full")


@app.resource("failures://crash")
def r_crash() -> str:
    raise ValueError("a secret")


@app.resource("failures://refused")
def r_refused() -> str:
    raise ProtocolError(1234, "Refused.", {"why": "because"})


@app.resource("failures://missing")
def r_missing() -> str:
    raise ResourceNotFound("failures://other")


@app.resource("failures://sure")
async def r_sure(ctx: Context) -> str:
    return str(await ctx.elicit("Sure?", bool))


@app.resource("failures://slow", timeout=0.05)
async def r_slow() -> str:
    await asyncio.sleep(60)
    return "done"


@app.resource("failures://items/{id}")
def r_items(id: str) -> str:
    return id


@app.method("acme/crash")
def m_crash() -> dict[str, Any]:
    raise ValueError("a secret")


@app.method("acme/tool_error")
def m_tool_error() -> dict[str, Any]:
    raise ToolError("the shelf is full")


@app.method("acme/typed")
def m_typed(text: str) -> dict[str, Any]:
    return {"echo": text}


@app.complete("p_typed", "name")
def c_name(prefix: str) -> list[str]:
    raise ValueError("a secret")


if "around" in sys.argv:

    @app.middleware
    async def around(request: Any, next: Any) -> Any:
        return await next(request)


app.run()
