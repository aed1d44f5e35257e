"""This project's Python client as a caller: ours.py URL legacy|auto SECONDS."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from calls import URI, ToolFailed, main, run

from gudgeon import Client, ToolError

REVISIONS = {"legacy": "2025-11-25", "auto": "auto"}


class Caller:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def call(self, name: str, arguments: dict[str, Any], on_progress: Callable[[float], None] | None) -> str:
        options = {"on_progress": lambda told: on_progress(told.progress)} if on_progress else {}
        try:
            return (await self.client.call_tool(name, arguments, **options)).text
        except ToolError as error:
            raise ToolFailed(str(error)) from None

    @asynccontextmanager
    async def subscription(self, notified: Callable[[], None]) -> AsyncIterator[None]:
        async def listen() -> None:
            async for _ in changes:
                notified()

        async with self.client.subscribe(URI) as changes:
            listening = asyncio.ensure_future(listen())
            try:
                yield
            finally:
                listening.cancel()


async def connected(url: str, era: str, timeout: float) -> None:
    async with Client(url, revision=REVISIONS[era], timeout=timeout, on_elicit=lambda request: True) as client:
        await run(Caller(client))


main(connected)
