"""Components beside plain tools, in Python."""

import asyncio
from typing import Annotated, Any, Literal

from pixel import PIXEL

from gudgeon import (
    Audio,
    Context,
    Depends,
    File,
    Header,
    ProtocolError,
    ResourceNotFound,
    Server,
    SyncContext,
    ToolError,
    UrlElicitationRequired,
    ask,
)
from gudgeon.types import ElicitRequest, Tool

FORM = {
    "type": "object",
    "properties": {
        "email": {"type": "string", "format": "email"},
        "copies": {"type": "integer", "minimum": 1, "maximum": 5},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "marks": {"type": "array", "items": {"type": "string", "enum": ["new", "gift"]}},
        "paper": {"type": "string", "default": "plain"},
    },
    "required": ["email", "copies", "size", "marks"],
}
page = ElicitRequest(mode="url", message="Please sign in", url="https://example.com/in", id="gate")
seen: dict[str, Any] = {"roots": 0, "read": 0, "page": ""}


def motto() -> str:
    return "mind the gap"


def add_to(app: Server[Any]) -> None:
    shelf = Server[Any]("shelf")

    @shelf.tool
    def tidy() -> str:
        return "tidy"

    app.mount("shelf", shelf)

    @app.tool
    async def form(ctx: Context) -> str:
        given = await ctx.elicit("Fill this in", FORM)
        return f"{given['email']} {given['copies']} {given['size']} {' '.join(given['marks'])} {given['paper']}"

    @app.tool
    def plainly(ctx: SyncContext) -> str:
        return "more" if ctx.elicit("Another book (1)?", bool) else "enough"

    @app.tool
    def returned(ctx: SyncContext) -> Any:
        question = ask.elicit("Another book (1)?", bool, key="more")
        answer = ctx.answer(question)
        return question if answer is None else "more" if answer else "enough"

    @app.tool
    async def delegate(ctx: Context) -> str:
        add = Tool.from_dict({"name": "add", "inputSchema": {"type": "object"}})
        result = await ctx.sample("Add 2 and 3.", max_tokens=10, tools=[add], models=["small"], cost_priority=1)
        return " ".join(block.type for block in result.content)

    @app.tool
    async def send(ctx: Context) -> str:
        seen["page"] = await ctx.elicit_url("Please sign in", "https://example.com/in")
        return "sent"

    @app.tool
    def arrive() -> str:
        app.notify_url_done(seen["page"])
        return "there"

    @app.tool
    def gate() -> str:
        raise UrlElicitationRequired([page])

    @app.on_roots_changed
    def roots_changed() -> None:
        seen["roots"] += 1

    @app.tool
    def moves() -> str:
        return str(seen["roots"])

    @app.tool
    def marks() -> list[str]:
        return ["new", "gift"]

    @app.tool
    def nothing() -> int | None:
        return None

    @app.tool
    def sound() -> Audio:
        return Audio(b"RIFF", format="wav")

    @app.tool
    def leaflet() -> File:
        return File(__file__.replace("offering.py", "pixel.py"), mime_type="text/plain")

    @app.tool
    def pictures() -> list[str | Audio]:
        return ["two sounds", Audio(PIXEL, format="wav"), Audio(PIXEL, format="wav")]

    @app.tool
    def region(name: Annotated[str, Header("Region")]) -> str:
        return name

    @app.tool
    def visits(ctx: SyncContext) -> str:
        ctx.session["visits"] = ctx.session.get("visits", 0) + 1
        return str(ctx.session["visits"])

    @app.tool(visible=lambda who: who is not None)
    def staff() -> str:
        return "for staff"

    @app.tool(timeout=0.05)
    async def late() -> str:
        await asyncio.sleep(60)
        return "never"

    @app.tool
    def locked() -> str:
        return "never"

    @app.middleware(on="tools/call")
    async def lock(request: Any, next: Any) -> Any:
        if request.params["name"] == "locked":
            raise ToolError("the shelf is locked")
        return await next(request)

    @app.tool
    def crash() -> str:
        raise ValueError("a secret")

    @app.tool
    def refuse() -> str:
        raise ProtocolError(1234, "Refused.", {"why": "because"})

    @app.tool
    def lost() -> str:
        raise ResourceNotFound("interop://lost")

    @app.tool
    def words(motto: Annotated[str, Depends(motto)], mood: Literal["calm", "loud"]) -> str:
        return motto.upper() if mood == "loud" else motto

    @app.tool
    def traced(ctx: SyncContext) -> str:
        return str(ctx.meta["traceparent"])

    @app.resource("interop://counted", cache=60, ttl=5, cache_scope="private")
    def counted() -> str:
        seen["read"] += 1
        return str(seen["read"])

    @app.tool
    def recount() -> str:
        seen["read"] = 0
        app.notify_updated("interop://counted")
        return "again"

    @app.method("acme/echo")
    def echo(text: str) -> dict[str, str]:
        return {"echo": text}
