"""The official Python SDK 1.x as a client: the legacy era only."""

import asyncio
import contextlib
from typing import Any

import mcp.types
from mcp import ClientSession, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import (
    CancelledNotification,
    CancelledNotificationParams,
    ClientNotification,
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    Result,
    SamplingCapability,
    SamplingToolsCapability,
)
from pydantic import BaseModel, ConfigDict
from steps import ANSWERS, LISTS, NOTIFIED, changes, describe, paged, perform_all, run, started, until, witnessed

NEWEST = mcp.types.LATEST_PROTOCOL_VERSION


class Peer:
    def __init__(self, session, initialized, logs, seen):
        self.session, self.initialized, self.logs, self.seen = session, initialized, logs, seen

    async def connect(self, step):
        return {"revision": self.initialized.protocolVersion, "server": self.initialized.serverInfo.name}

    async def tools(self):
        async def page(cursor):
            result = await self.session.list_tools(cursor)
            return result.tools, result.nextCursor

        return await paged(page)

    async def list_tools(self, step):
        return sorted(tool.name for tool in (await self.tools())[0])

    async def pages(self, step):
        return (await self.tools())[1]

    async def bad_cursor(self, step):
        return (await self.session.list_tools("made-up")).nextCursor

    async def list_resources(self, step):
        return sorted(str(resource.uri) for resource in (await self.session.list_resources()).resources)

    async def list_templates(self, step):
        return sorted(
            template.uriTemplate for template in (await self.session.list_resource_templates()).resourceTemplates
        )

    async def list_prompts(self, step):
        return sorted(prompt.name for prompt in (await self.session.list_prompts()).prompts)

    async def call(self, step):
        progress = []
        self.logs.clear()
        if "logs" in step:
            await self.session.set_logging_level(step["logs"])

        async def on_progress(done, total, message):
            progress.append([done, total])

        result = await self.session.call_tool(
            step["name"],
            step.get("arguments", {}),
            progress_callback=on_progress if step.get("progress") else None,
            meta=step.get("meta"),
        )
        if "logs" in step:
            await until(lambda: self.logs)
        if step.get("progress"):
            await until(lambda: progress and progress[-1][0] == progress[-1][1])
        return describe(result.model_dump(by_alias=True, mode="json", exclude_none=True), progress, self.logs)

    async def cancel(self, step):
        witness = step.get("witness")
        before = int((await self.call({"name": witness}))["text"]) if witness else 0
        call = await started(self.session.call_tool, step)
        # This SDK never sends the notification by itself; the id is the last one that it used.
        gone = CancelledNotificationParams(requestId=self.session._request_id - 1, reason="test")
        await self.session.send_notification(
            ClientNotification(CancelledNotification(method="notifications/cancelled", params=gone))
        )
        await asyncio.sleep(0.1)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError, Exception):
            await call
        return {"cancelled": await witnessed(lambda: self.call({"name": witness}), before) if witness else None}

    async def changes(self, step):
        self.seen.clear()
        await self.session.subscribe_resource(step["uri"])
        return await changes(self.call, self.seen, LISTS | {f"updated {step['uri']}"})

    async def unsubscribed(self, step):
        await self.session.unsubscribe_resource(step["uri"])
        # Messages that were on their way come before these.
        await changes(self.call, self.seen, LISTS)
        self.seen.clear()
        return await changes(self.call, self.seen, LISTS)

    async def page_done(self, step):
        self.seen.clear()
        for name in ("send", "arrive"):
            await self.call({"name": name})
        await until(lambda: self.seen)
        return sorted(self.seen)

    async def roots_changed(self, step):
        before = int((await self.call({"name": "moves"}))["text"])
        await self.session.send_roots_list_changed()
        return await witnessed(lambda: self.call({"name": "moves"}), before)

    async def request(self, step):
        class Vendors(BaseModel):
            method: str = step["method"]
            params: dict[str, Any] = step["params"]

        class Answer(Result):
            model_config = ConfigDict(extra="allow")

        answer = await self.session.send_request(Vendors(), Answer)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def read(self, step):
        return {"text": (await self.session.read_resource(step["uri"])).contents[0].text}

    async def prompt(self, step):
        result = await self.session.get_prompt(step["name"], step.get("arguments"))
        return [[message.role, message.content.text] for message in result.messages]

    async def complete(self, step):
        reference = PromptReference(type="ref/prompt", name=step["prompt"])
        result = await self.session.complete(reference, {"name": step["argument"], "value": step["value"]})
        return list(result.completion.values)

    async def ping(self, step):
        await self.session.send_ping()
        return True


def dial(target):
    if isinstance(target, list):
        return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    return sse_client(target) if target.endswith("/sse") else streamable_http_client(target)


async def perform(job):
    mcp.types.LATEST_PROTOCOL_VERSION = NEWEST if job["era"] == "legacy" else job["era"]
    logs, seen = [], set()

    async def on_message(message):
        told = getattr(message, "root", None)
        if getattr(told, "method", None) in NOTIFIED:
            seen.add(NOTIFIED[told.method])
        elif getattr(told, "method", None) == "notifications/resources/updated":
            seen.add(f"updated {told.params.uri}")
        elif getattr(told, "method", None) == "notifications/elicitation/complete":
            seen.add("page done")

    async def on_log(params):
        logs.append([params.level, params.data])

    async def on_elicit(context, params):
        return ElicitResult.model_validate(ANSWERS["forms"][params.message])

    async def on_sample(context, params):
        if params.tools:
            return CreateMessageResultWithTools.model_validate(ANSWERS["tool_use"])
        return CreateMessageResult.model_validate(ANSWERS["sample"])

    async def on_roots(context):
        return ListRootsResult.model_validate(ANSWERS["roots"])

    answering: dict[str, Any] = {
        "elicitation_callback": on_elicit,
        "sampling_callback": on_sample,
        "sampling_capabilities": SamplingCapability(tools=SamplingToolsCapability()),
        "list_roots_callback": on_roots,
    }
    # A client that can be asked nothing.
    if job.get("bare"):
        answering = {}

    async with (
        dial(job["target"]) as (read, write, *_),
        ClientSession(
            read,
            write,
            logging_callback=on_log,
            message_handler=on_message,
            **answering,
        ) as session,
    ):
        await run(Peer(session, await session.initialize(), logs, seen), job["steps"])


perform_all(perform)
