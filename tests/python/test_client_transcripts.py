"""Every transcript of a client, against a server that says what stands there: frames, results, callbacks."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from peer import PATIENCE
from replay import equal, header

from gudgeon import Client, McpError
from gudgeon.types import Implementation

HERE = Path(__file__).parents[1] / "client_transcripts"
FILES = sorted(HERE.rglob("*.txt"))


class Wire:
    """The transcript's end of a client's connection is `said`, what comes from it, and `hears`, what goes to it."""

    def __init__(self) -> None:
        self.said: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.hears: asyncio.Queue[bytes | None] = asyncio.Queue()

    async def receive(self) -> bytes | None:
        return await self.hears.get()

    async def send(self, message: bytes, /) -> None:
        self.said.put_nowait(message)

    async def close(self) -> None:
        self.said.put_nowait(None)
        self.hears.put_nowait(None)


class Player:
    def __init__(self, revision: Any) -> None:
        self.revision = revision
        self.told: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()
        self.acts: list[asyncio.Task[Any]] = []
        self.listening: list[asyncio.Task[Any]] = []
        self.client: Client
        self.wire: Wire

    def tell(self, what: str, value: Any) -> None:
        self.told.put_nowait((what, value))

    async def act(self, name: str, given: Any) -> Any:
        match name:
            case "connect":
                self.wire = Wire()
                self.client = Client(
                    self.wire,
                    revision=self.revision,
                    client_info=Implementation("c", "1"),
                    roots=["file:///a"],
                    on_sample=lambda request: "Sheep.",
                    on_log=lambda log: self.tell("log", [log.level, log.logger, log.data]),
                    on_list_changed=lambda change: self.tell("list_changed", change.kind),
                )
                return (await self.client.connect()).revision
            case "list_tools":
                return [[tool.name, tool.input_schema] for tool in await self.client.list_tools()]
            case "list_resources":
                return [[resource.uri, resource.name] for resource in await self.client.list_resources()]
            case "list_resource_templates":
                return [
                    [template.uri_template, template.name] for template in await self.client.list_resource_templates()
                ]
            case "list_prompts":
                prompts = await self.client.list_prompts()
                return [[prompt.name, [[arg.name, arg.required] for arg in prompt.arguments]] for prompt in prompts]
            case "call_tool":
                called = await self.client.call_tool(
                    given["name"],
                    given.get("arguments"),
                    raise_on_error=False,
                    on_progress=lambda step: self.tell("progress", [step.progress, step.total]),
                )
                return [called.data, called.is_error]
            case "read_resource":
                return [content.text for content in (await self.client.read_resource(given)).contents]
            case "get_prompt":
                prompt = await self.client.get_prompt(given["name"], given.get("arguments"))
                return [[message.role, message.text] for message in prompt.messages]
            case "ping":
                return await self.client.ping() >= 0
            case "set_roots":
                return self.client.set_roots(given)
            case "subscribe":
                changes = await self.client.subscribe(given).__aenter__()
                self.listening.append(asyncio.create_task(self.listen(changes)))
                return None
        raise AssertionError(f"what is {name}?")

    async def listen(self, changes: Any) -> None:
        async for change in changes:
            self.tell("updated", change.uri)

    async def outcome(self) -> Any:
        try:
            return await asyncio.wait_for(self.acts.pop(0), PATIENCE)
        except McpError as error:
            return {"code": error.code, "message": error.message}

    async def take(self, mark: str) -> Any:
        match mark:
            case ">":
                message = await asyncio.wait_for(self.wire.said.get(), PATIENCE)
                return None if message is None else json.loads(message)
            case "=":
                return await self.outcome()
            case "*":
                return await asyncio.wait_for(self.told.get(), PATIENCE)

    async def end(self) -> None:
        """The client says nothing more, and nobody waits."""
        assert self.acts == []
        await self.client.close()
        assert await self.wire.said.get() is None
        assert self.told.empty()
        for task in self.listening:
            task.cancel()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
async def test_transcript(path: Path) -> None:
    lines = path.read_text("utf-8").splitlines()
    player = Player(header(lines, "revision"))
    for number, line in enumerate(lines, 1):
        mark, _, rest = line.partition(" ")
        match mark:
            case "!" if rest == "cancel":
                player.acts.pop(0).cancel()
            case "!":
                name, _, given = rest.partition(" ")
                act = player.act(name, json.loads(given) if given else None)
                player.acts.append(asyncio.create_task(act))
                await asyncio.sleep(0)
            case "<":
                player.wire.hears.put_nowait(rest.encode())
            case ">" | "=":
                actual = await player.take(mark)
                assert equal(json.loads(rest), actual), f"line {number}, expected\n{rest}\ngot\n{json.dumps(actual)}"
            case "*":
                name, _, value = rest.partition(" ")
                actual = await player.take(mark)
                assert (name, json.loads(value)) == actual, f"line {number}, expected\n{rest}\ngot\n{actual}"
    await player.end()


def test_the_transcripts_are_there() -> None:
    assert len(FILES) >= 5
