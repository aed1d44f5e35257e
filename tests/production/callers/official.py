"""The official Python SDK 2.x as a caller: official.py URL legacy|auto SECONDS."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from calls import URI, ToolFailed, main, run
from mcp import Client
from mcp_types import ElicitResult


class Caller:
    def __init__(self, client: Client, era: str) -> None:
        self.client, self.era = client, era
        # The functions that are called for each change of a legacy subscription.
        self.notified: set[Callable[[], None]] = set()

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Callable[[float], None] | None) -> str:
        async def told(done: float, total: float | None, message: str | None) -> None:
            on_progress(done)

        result = await self.client.call_tool(name, arguments, progress_callback=told if on_progress else None)
        text = "".join(block.text for block in result.content)
        if result.is_error:
            raise ToolFailed(text)
        return text

    @asynccontextmanager
    async def subscription(self, notified: Callable[[], None]) -> AsyncIterator[None]:
        if self.era == "legacy":
            self.notified.add(notified)
            try:
                await self.client.subscribe_resource(URI)
                yield
            finally:
                self.notified.discard(notified)
            return

        async def listen() -> None:
            async for _ in changes:
                notified()

        async with self.client.listen(resource_subscriptions=[URI]) as changes:
            listening = asyncio.ensure_future(listen())
            try:
                yield
            finally:
                listening.cancel()

    async def on_message(self, message: Any) -> None:
        if getattr(message, "method", None) == "notifications/resources/updated":
            for notified in list(self.notified):
                notified()


async def answer(context: object, params: object) -> ElicitResult:
    return ElicitResult(action="accept", content={"value": True})


async def connected(url: str, era: str, timeout: float) -> None:
    caller: Caller

    async def on_message(message: Any) -> None:
        await caller.on_message(message)

    client = Client(
        url, mode=era, read_timeout_seconds=timeout, elicitation_callback=answer, message_handler=on_message
    )
    caller = Caller(client, era)
    async with client:
        await run(caller)


main(connected)
