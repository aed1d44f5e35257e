"""Clients of the pizzeria: calls that succeed, calls that are rejected, and one that is cancelled."""

from __future__ import annotations

import asyncio
from typing import Any

from gudgeon import Client, Implementation, ProtocolError, Target, ToolError


async def story(target: Target, revision: Any) -> None:
    async with Client(target, revision=revision, client_info=Implementation("Ada", "1.0")) as guest:

        async def say(tool: str, **arguments: Any) -> Any:
            return (await guest.call_tool(tool, arguments)).data

        # Lifespan and dependencies: the oven is acquired for the call and released, after a failure as well.
        assert await say("bake", pizza="margherita") == "margherita, 0 ovens free"
        failed = await guest.call_tool("bake", {"pizza": "hawaii"}, raise_on_error=False)
        assert failed.is_error and "not in this house" not in failed.text
        assert await say("ovens") == 1
        tools = {tool.name: tool for tool in await guest.list_tools()}
        assert list(tools["bake"].input_schema["properties"]) == ["pizza"]

        # Middleware, and a rate limit that rejects the third call.
        assert await say("greet") == "Buongiorno, Ada"
        for _ in range(2):
            recipe = await guest.get_prompt("recipe", {"pizza": "margherita"})
            assert recipe.messages[0].text == "How do I bake a margherita?"
        try:
            await guest.get_prompt("recipe", {"pizza": "margherita"})
            raise AssertionError("two recipes are given away, no third")
        except ProtocolError as error:
            assert error.code == 429 and "too many requests" in str(error)

        # A timeout, a concurrency limit of one, and a cancelled call.
        late = await guest.call_tool("sourdough", raise_on_error=False)
        assert late.is_error and "took longer" in late.text
        tables = await asyncio.gather(*(say("serve_table", table=n) for n in range(5)))
        assert sorted(tables) == [f"table {n}, 1 at once" for n in range(5)]
        begun = asyncio.Event()
        waiting = asyncio.create_task(
            guest.call_tool("wait_for_table", {"name": "Ada"}, on_progress=lambda report: begun.set())
        )
        await asyncio.wait_for(begun.wait(), 10)
        waiting.cancel()
        while await say("who_left") != ["Ada"]:
            await asyncio.sleep(0.01)

        # A tool that is not visible to a caller does not exist for it.
        assert "open_till" not in tools
        try:
            await guest.call_tool("open_till")
            raise AssertionError("the till is for the staff")
        except ProtocolError as error:
            assert error.code == -32602

        # The bar is another server, mounted under a prefix.
        assert await say("bar_pour", drink="wine") == "a glass of wine"
        pages = [resource.uri for resource in await guest.list_resources()]
        assert len(pages) == 1 and (await guest.read_resource(pages[0])).text == "water, wine"

        specials = await guest.request("pizzeria/specials", {"day": "Friday"})  # the result as on the wire
        assert specials["Friday"] == "quattro stagioni"
        try:
            await guest.request("pizzeria/leftovers")
            raise AssertionError("nobody serves leftovers")
        except ProtocolError as error:
            assert error.code == -32601

        # Tags enable or disable several tools at once.
        assert await say("close_kitchen") == "closed"
        left = {tool.name for tool in await guest.list_tools()}
        assert not left & {"bake", "ovens"} and "greet" in left
        try:
            await say("bake", pizza="margherita")
            raise AssertionError("the kitchen is closed")
        except (ProtocolError, ToolError) as error:
            assert "bake" in str(error)
