"""A handler that was cancelled ends its cleanup, also when its server closes meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from gudgeon import Client, Server


def test_the_cleanup_of_a_cancelled_handler_ends_before_the_lifespan() -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Server[Any]) -> AsyncIterator[None]:
        yield
        seen.append("lifespan")

    app = Server("shelf", lifespan=lifespan)
    started, cleans = asyncio.Event(), asyncio.Event()

    @app.tool
    async def wait() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleans.set()
            # As long as a rollback takes: the client closes before it ends.
            await asyncio.sleep(0.1)
            seen.append("cleanup")

    async def main() -> None:
        async with Client(app) as client:
            call = asyncio.ensure_future(client.call_tool("wait"))
            await started.wait()
            call.cancel()
            await cleans.wait()

    asyncio.run(main())
    assert seen == ["cleanup", "lifespan"]
