"""Every request of a client takes a time limit of its own."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from gudgeon import Server, SyncClient
from gudgeon.errors import CallTimeout
from gudgeon.middleware import Request
from gudgeon.testing import ERAS, connect, connect_sync

REQUESTS: dict[str, Callable[[Any, float], Any]] = {
    "list_tools": lambda client, seconds: client.list_tools(timeout=seconds),
    "list_resources": lambda client, seconds: client.list_resources(timeout=seconds),
    "list_resource_templates": lambda client, seconds: client.list_resource_templates(timeout=seconds),
    "list_prompts": lambda client, seconds: client.list_prompts(timeout=seconds),
    "list_tools_page": lambda client, seconds: client.list_tools_page(timeout=seconds),
    "list_resources_page": lambda client, seconds: client.list_resources_page(timeout=seconds),
    "list_resource_templates_page": lambda client, seconds: client.list_resource_templates_page(timeout=seconds),
    "list_prompts_page": lambda client, seconds: client.list_prompts_page(timeout=seconds),
    "complete": lambda client, seconds: client.complete("ask", "topic", "a", timeout=seconds),
    "set_log_level": lambda client, seconds: client.set_log_level("error", timeout=seconds),
    "ping": lambda client, seconds: client.ping(timeout=seconds),
    "call_tool": lambda client, seconds: client.call_tool("add", timeout=seconds),
    "read_resource": lambda client, seconds: client.read_resource("a://b", timeout=seconds),
    "get_prompt": lambda client, seconds: client.get_prompt("ask", {"topic": "a"}, timeout=seconds),
    "request": lambda client, seconds: client.request("resources/list", timeout=seconds),
}
# A modern client sets the level in each request, and pings by another method.
WITHOUT_REQUEST = {"2026-07-28": {"set_log_level", "ping"}}


def silent() -> Server:
    """Returns a server that answers nothing after its handshake."""
    app = Server("silent")

    @app.tool
    def add() -> int:
        return 1

    @app.resource("a://b")
    def b() -> str:
        return "b"

    @app.resource("a://{c}")
    def c(c: str) -> str:
        return c

    @app.prompt
    def ask(topic: str) -> str:
        return topic

    @app.complete("ask", "topic")
    def topics(prefix: str) -> list[str]:
        return [prefix]

    @app.middleware
    async def hold(request: Request, call_next: Any) -> Any:
        if not request.method.startswith(("server/", "initialize")):
            await asyncio.Event().wait()
        return await call_next(request)

    return app


@pytest.mark.parametrize("era", ERAS)
def test_each_request_ends_by_its_own_limit(era: str) -> None:
    with connect_sync(silent(), revision=era) as client:
        assert isinstance(client, SyncClient)
        for name, request in REQUESTS.items():
            if name not in WITHOUT_REQUEST.get(era, ()):
                with pytest.raises(CallTimeout):
                    request(client, 0.001)


async def test_each_request_of_an_async_client_ends_by_its_own_limit() -> None:
    async with connect(silent(), revision="2025-11-25") as client:
        for request in REQUESTS.values():
            with pytest.raises(CallTimeout):
                await request(client, 0.001)
