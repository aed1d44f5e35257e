"""Progress that steps back: dropped, and told to whoever runs the server."""

import logging

import pytest

from eventually import eventually
from gudgeon import Client, Context, Server, SyncContext

PATIENCE = 60


@pytest.mark.parametrize(
    ("over", "revision"),
    [("memory", "2025-11-25"), ("memory", "2026-07-28"), pytest.param("http", "2026-07-28", marks=pytest.mark.io)],
)
@pytest.mark.parametrize("tool", ["later", "in_place"])
async def test_progress_that_steps_back_reaches_the_log(
    over: str, revision: str, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    app = Server("s")

    @app.tool
    async def later(ctx: Context) -> str:
        for step in (1, 3, 2, 1, 4):
            await ctx.progress(step)
        return "done"

    @app.tool
    def in_place(ctx: SyncContext) -> str:
        for step in (1, 3, 2, 1, 4):
            ctx.progress(step)
        return "done"

    told: list[float] = []

    async def call(client: Client) -> None:
        with caplog.at_level(logging.WARNING):
            result = await client.call_tool(tool, on_progress=lambda step: told.append(step.progress), timeout=PATIENCE)
        assert result.text == "done"

    if over == "memory":
        async with Client(app, revision=revision) as client:
            await call(client)
    else:
        async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url, revision=revision) as client:
            await call(client)
    assert told == [1, 3, 4]
    eventually(lambda: caplog.text.count("the progress of tools/call must increase, and 2 came after 3") == 1)
    assert caplog.text.count("must increase") == 1
