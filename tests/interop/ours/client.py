"""Our Python `Client` against servers."""

import asyncio
import contextlib

from described import ANSWERING, describe, failure, perform_all, revision_of, step_done

from gudgeon import Client


class Peer:
    def __init__(self, client, logs):
        self.client, self.logs = client, logs

    async def connect(self, step):
        return {"revision": self.client.revision, "server": self.client.server.name}

    async def list_tools(self, step):
        return sorted(tool.name for tool in await self.client.list_tools())

    async def list_resources(self, step):
        return sorted(resource.uri for resource in await self.client.list_resources())

    async def list_templates(self, step):
        return sorted(template.uri_template for template in await self.client.list_resource_templates())

    async def list_prompts(self, step):
        return sorted(prompt.name for prompt in await self.client.list_prompts())

    async def call(self, step):
        progress = []
        self.logs.clear()
        if "logs" in step:
            await self.client.set_log_level(step["logs"])
        result = await self.client.call_tool(
            step["name"],
            step.get("arguments"),
            raise_on_error=False,
            on_progress=lambda at: progress.append([at.progress, at.total]),
        )
        return describe(result, progress, self.logs)

    async def cancel(self, step):
        before = await self.witnessed(step)
        told = asyncio.Event()
        call = asyncio.ensure_future(
            self.client.call_tool(step["name"], step["arguments"], on_progress=lambda _: told.set())
        )
        # Progress shows that the handler runs. A server that counts no cancelled calls need not report any.
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(told.wait(), 0.3 if before is None else 5)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
            raise AssertionError("the cancelled call returned a result")
        if before is None:
            return {"cancelled": None}
        for _ in range(60):
            count = await self.witnessed(step) - before
            if count:
                break
            await asyncio.sleep(0.05)
        return {"cancelled": count}

    async def witnessed(self, step):
        return int((await self.client.call_tool(step["witness"])).text) if "witness" in step else None

    async def changes(self, step):
        seen = set()
        async with self.client.subscribe(step["uri"], tools=True, resources=True, prompts=True) as changes:

            async def listen():
                async for change in changes:
                    seen.add(f"updated {change.uri}" if change.kind == "updated" else change.kind)

            listening = asyncio.ensure_future(listen())
            for _ in range(20):
                await self.client.call_tool("touch")
                await self.client.call_tool("grow")
                await asyncio.sleep(0.05)
                if len(seen) == 4:
                    break
            listening.cancel()
        return sorted(seen)

    async def read(self, step):
        return {"text": (await self.client.read_resource(step["uri"])).text}

    async def prompt(self, step):
        result = await self.client.get_prompt(step["name"], step.get("arguments"))
        return [[message.role, message.text] for message in result.messages]

    async def complete(self, step):
        return list((await self.client.complete(step["prompt"], step["argument"], step["value"])).values)

    async def ping(self, step):
        return await self.client.ping() >= 0


async def perform(job):
    logs = []
    on_log = lambda message: logs.append([message.level, message.data])  # noqa: E731
    async with Client(job["target"], revision=revision_of(job), on_log=on_log, **ANSWERING) as client:
        peer = Peer(client, logs)
        for step in job["steps"]:
            try:
                got = await getattr(peer, step["do"])(step)
            except Exception as error:
                got = failure(error)
            step_done(step, got)


perform_all(perform)
