"""The fixture server of the transcripts in Python. Its options are those of README.md."""

import argparse
import asyncio
import sys
from dataclasses import dataclass
from typing import Any, TypedDict

from gudgeon import (
    Audio,
    Context,
    EmbeddedResource,
    Image,
    Other,
    Page,
    ProtocolError,
    ResourceLink,
    ResourceNotFound,
    Server,
    SyncContext,
    ToolError,
    ToolResult,
    ask,
    assistant,
    user,
)

parser = argparse.ArgumentParser()
parser.add_argument("--limit", type=int, default=16 << 20)
parser.add_argument("--dialects")
parser.add_argument("--around", action="store_true")
parser.add_argument("--listen", metavar="URL")


class Book(TypedDict):
    id: int
    title: str


@dataclass
class Colour:
    value: str

    def __post_init__(self):
        if self.value == "none":
            raise ValueError("no such colour")


def fixture(words: list[str]) -> Server[Any]:
    """Returns the server with these options."""
    given = parser.parse_args(words)
    options: Any = {"max_message": given.limit}
    if given.dialects:
        options["dialects"] = given.dialects.split(",")
    app = Server("fixture", version="1.0", instructions="Ask the fixture.", page_size=100, **options)

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
        name, colour = ask.elicit("Who?", str, key="name"), ask.elicit("Colour?", Colour, key="colour")
        if (who := ctx.answer(name)) is None:
            return name
        if (liked := ctx.answer(colour)) is None:
            return colour
        return f"{who} likes {liked.value}"

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

    @app.method("acme/signed")
    def acme_signed() -> dict[str, Any]:
        other = {"name": "else", "version": "0"}
        meta = {"acme/by": "us", "io.modelcontextprotocol/serverInfo": other}
        return {"resultType": "complete", "signed": True, "_meta": meta}

    if given.dialects:

        @app.tool(timeout=0.01)
        async def slow():
            """Too slow."""
            await asyncio.Event().wait()

        @app.tool
        def change(what: str):
            """Change something."""
            match what:
                case "tools":
                    app.tools.enable("hidden")
                case "resources":
                    app.resources.disable("fixture://bytes")
                case "prompts":
                    app.prompts.disable("greet")
                case _:
                    app.notify_updated(what)
            return "changed"

        @app.resource("fixture://broken")
        def broken() -> str:
            """Broken."""
            raise RuntimeError("a secret")

        @app.resource("fixture://search{?q,limit}")
        def search(q: str, limit: int = 10) -> dict[str, Any]:
            """Search."""
            return {"q": q, "limit": limit}

        @app.prompt
        def talk() -> Any:
            """Two messages."""
            return [user("Hello."), assistant("Hello you.")]

        @app.prompt
        def lost() -> str:
            """Lost."""
            raise RuntimeError("a secret")

    if given.around:

        @app.middleware
        async def every_request(request: Any, next: Any) -> Any:
            if request.method == "completion/complete":
                raise ProtocolError(1234, "Not now.")
            return await next(request)

        @app.middleware(on="tools/list")
        async def lists(request: Any, next: Any) -> Any:
            page = await next(request)
            return Page([tool for tool in page.items if tool.name in ("add", "echo")])

        @app.middleware(on=["tools/call", "prompts/get"])
        async def calls(request: Any, next: Any) -> Any:
            name, arguments = request.params["name"], request.params["arguments"]
            if name == "fail":
                raise ToolError("Refused before it ran.")
            if name == "add":
                request.params = {**request.params, "arguments": {**arguments, "b": 100}}
            if name == "greet":
                request.params = {**request.params, "arguments": {**arguments, "style": "loud"}}
            result = await next(request)
            return ToolResult(result.text + "!") if name == "echo" else result

        @app.middleware(on="resources/read")
        async def reads(request: Any, next: Any) -> Any:
            if request.params["uri"] == "fixture://bytes":
                raise ProtocolError(1234, "Not these.", {"uri": "fixture://bytes"})
            result = await next(request)
            return "Read: " + result.contents[0].text

    return app


def main() -> None:
    app, given = fixture(sys.argv[1:]), parser.parse_args()
    if given.listen:
        print(given.listen, file=sys.stderr, flush=True)
        app.run(given.listen, legacy_sse=True, keep_alive=0.2, shutdown_grace=0.5)
    else:
        app.run()


if __name__ == "__main__":
    main()
