"""A client that subscribes to changes. The same code works with sessions and in the revision without them."""

from __future__ import annotations

import asyncio
from typing import Any

from gudgeon import Change, Client, ProtocolError, Subscription, Target, ToolError

COUNTER = "bakery://counter"


async def story(target: Target, revision: Any) -> None:
    async with Client(target, revision=revision) as customer:

        async def names() -> set[str]:
            return {tool.name for tool in await customer.list_tools()}

        async def seen(changes: Subscription, wanted: Change) -> None:
            """Waits for this change. Equal changes that are not taken yet are merged; others may come in between."""
            async for change in changes:
                if change == wanted:
                    return

        async def see(changes: Subscription, kind: Any, uri: str | None = None) -> None:
            await asyncio.wait_for(seen(changes, Change.from_dict({"kind": kind, "uri": uri})), 10)

        async with customer.subscribe(COUNTER, tools=True) as changes:
            assert (await customer.call_tool("bake", {"bread": "rye", "loaves": 2})).text == "5 rye"
            await see(changes, "updated", COUNTER)
            assert (await customer.read_resource(COUNTER)).text == '{"rye":5}'

            assert "bake" in await names()
            await customer.call_tool("close_oven")
            await see(changes, "tools")
            assert "bake" not in await names()
            try:
                await customer.call_tool("bake", {"bread": "rye", "loaves": 1})
                raise AssertionError("a tool that is disabled can't be called")
            except ProtocolError as error:
                assert error.code == -32602 and "bake" in str(error)
            await customer.call_tool("light_oven")
            await see(changes, "tools")
            assert "bake" in await names()

        # Changes of the three lists, in a separate subscription.
        async with customer.subscribe(tools=True, resources=True, prompts=True) as changes:
            await customer.call_tool("new_recipe", {"bread": "spelt"})
            kinds = {"tools", "resources", "prompts"}
            while kinds:
                change = await asyncio.wait_for(anext(changes), 10)
                assert change.kind != "updated", "nobody subscribed to a resource here"
                kinds.discard(change.kind)
            assert (await customer.call_tool("slice_spelt")).text == "sliced spelt"
            assert "spelt" in (await customer.read_resource("bakery://recipes/spelt")).text
            assert [prompt.name for prompt in await customer.list_prompts()] == ["praise", "praise_spelt"]
            try:
                await customer.call_tool("new_recipe", {"bread": "spelt"})
                raise AssertionError("there is spelt already")
            except ToolError as error:
                assert error.text == "There is spelt already."
            await customer.call_tool("forget_recipe", {"bread": "spelt"})
            await see(changes, "prompts")
            assert "slice_spelt" not in await names()

        # Leaving the block ends the subscription; a new one reports the changes from then on.
        await customer.call_tool("sell", {"bread": "rye"})
        assert [change async for change in changes] == []
        async with customer.subscribe(COUNTER) as changes:
            await customer.call_tool("sell", {"bread": "rye"})
            assert (await asyncio.wait_for(anext(changes), 10)).uri == COUNTER

            # A wait that is cancelled loses no change.
            waiting = asyncio.create_task(anext(changes))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await customer.call_tool("sell", {"bread": "rye"})
            assert (await asyncio.wait_for(anext(changes), 10)).uri == COUNTER

        try:
            customer.subscribe()
            raise AssertionError("nothing to subscribe to")
        except ValueError as problem:
            assert "the subscription is empty" in str(problem)
