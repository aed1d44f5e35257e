"""The official Python SDK 2.x as a client."""

import asyncio
import contextlib
import sys
import warnings
from typing import Any

from mcp import Client, StdioServerParameters
from mcp.client import session
from mcp.client.sse import sse_client
from mcp.shared.subscriptions import PromptsListChanged, ResourcesListChanged, ToolsListChanged
from mcp_types import (
    CreateMessageResult,
    CreateMessageResultWithTools,
    ElicitResult,
    ListRootsResult,
    PromptReference,
    Request,
    Result,
    SamplingCapability,
    SamplingToolsCapability,
)
from pydantic import ConfigDict
from steps import ANSWERS, LISTS, NOTIFIED, changes, describe, paged, perform_all, run, started, until, witnessed

warnings.simplefilter("ignore")  # ping and log levels are deprecated there, and tested here

NEWEST_HANDSHAKE = session.LATEST_HANDSHAKE_VERSION
EVENTS = {ToolsListChanged: "tools", ResourcesListChanged: "resources", PromptsListChanged: "prompts"}


class Peer:
    def __init__(self, client, era, logs, seen):
        self.client, self.era, self.logs, self.seen = client, era, logs, seen

    async def connect(self, step):
        return {"revision": self.client.protocol_version, "server": self.client.server_info.name}

    async def tools(self):
        async def page(cursor):
            result = await self.client.list_tools(cursor=cursor)
            return result.tools, result.next_cursor

        return await paged(page)

    async def list_tools(self, step):
        return sorted(tool.name for tool in (await self.tools())[0])

    async def pages(self, step):
        return (await self.tools())[1]

    async def bad_cursor(self, step):
        return (await self.client.list_tools(cursor="made-up")).next_cursor

    async def list_resources(self, step):
        return sorted(str(resource.uri) for resource in (await self.client.list_resources()).resources)

    async def list_templates(self, step):
        return sorted(
            template.uri_template for template in (await self.client.list_resource_templates()).resource_templates
        )

    async def list_prompts(self, step):
        return sorted(prompt.name for prompt in (await self.client.list_prompts()).prompts)

    async def call(self, step):
        progress, meta = [], dict(step.get("meta", {}))
        self.logs.clear()
        if "logs" in step and self.era == "legacy":
            await self.client.set_logging_level(step["logs"])
        elif "logs" in step:
            meta["io.modelcontextprotocol/logLevel"] = step["logs"]

        async def on_progress(done, total, message):
            progress.append([done, total])

        result = await self.client.call_tool(
            step["name"],
            step.get("arguments", {}),
            progress_callback=on_progress if step.get("progress") else None,
            meta=meta or None,
        )
        if "logs" in step:
            await until(lambda: self.logs)
        if step.get("progress"):
            await until(lambda: progress and progress[-1][0] == progress[-1][1])
        return describe(result.model_dump(by_alias=True, mode="json", exclude_none=True), progress, self.logs)

    async def cancel(self, step):
        witness = step.get("witness")
        before = int((await self.call({"name": witness}))["text"]) if witness else 0
        call = await started(self.client.call_tool, step)
        call.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await call
        return {"cancelled": await witnessed(lambda: self.call({"name": witness}), before) if witness else None}

    async def changes(self, step):
        self.seen.clear()
        if self.era == "legacy":
            await self.client.subscribe_resource(step["uri"])
            return await changes(self.call, self.seen, LISTS | {f"updated {step['uri']}"})
        lists = {f"{kind}_list_changed": True for kind in LISTS}
        return await self.heard(LISTS | {f"updated {step['uri']}"}, **lists, resource_subscriptions=[step["uri"]])

    async def heard(self, wanted, **filters):
        """Returns the notifications of a stream with these filters, until the wanted ones have come."""
        self.seen.clear()
        async with self.client.listen(**filters) as subscription:

            async def listen():
                async for event in subscription:
                    self.seen.add(EVENTS.get(type(event)) or f"updated {event.uri}")

            listening = asyncio.ensure_future(listen())
            told = await changes(self.call, self.seen, wanted)
            listening.cancel()
            return told

    async def filtered(self, step):
        return await self.heard({"prompts"}, prompts_list_changed=True)

    async def ended(self, step):
        async with self.client.listen(tools_list_changed=True) as subscription:
            print("listening", file=sys.stderr, flush=True)
            async for _ in subscription:
                pass
        return "graceful"

    async def unsubscribed(self, step):
        await self.client.unsubscribe_resource(step["uri"])
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
        await self.client.send_roots_list_changed()
        return await witnessed(lambda: self.call({"name": "moves"}), before)

    async def request(self, step):
        class Vendors(Request[dict[str, Any], str]):
            method: str = step["method"]
            params: dict[str, Any] = step["params"]

        class Answer(Result):
            model_config = ConfigDict(extra="allow")

        answer = await self.client.session.send_request(Vendors(), Answer)
        return answer.model_dump(by_alias=True, mode="json", exclude_none=True)

    async def kept(self, step):
        result = await self.client.read_resource(step["uri"])
        return [result.ttl_ms, result.cache_scope]

    async def lists_kept(self, step):
        result = await self.client.list_tools()
        return [result.ttl_ms, result.cache_scope]

    async def read(self, step):
        return {"text": (await self.client.read_resource(step["uri"])).contents[0].text}

    async def prompt(self, step):
        result = await self.client.get_prompt(step["name"], step.get("arguments"))
        return [[message.role, message.content.text] for message in result.messages]

    async def complete(self, step):
        reference = PromptReference(type="ref/prompt", name=step["prompt"])
        result = await self.client.complete(reference, {"name": step["argument"], "value": step["value"]})
        return list(result.completion.values)

    async def ping(self, step):
        await self.client.send_ping()
        return True


def reach(target):
    if isinstance(target, list):
        return StdioServerParameters(command=target[0], args=target[1:])
    return sse_client(target) if target.endswith("/sse") else target


async def perform(job):
    era = job["era"] if job["era"] in ("legacy", "auto") else "legacy"
    session.LATEST_HANDSHAKE_VERSION = NEWEST_HANDSHAKE if era == job["era"] else job["era"]
    logs, seen = [], set()

    async def on_message(message):
        if getattr(message, "method", None) in NOTIFIED:
            seen.add(NOTIFIED[message.method])
        elif getattr(message, "method", None) == "notifications/resources/updated":
            seen.add(f"updated {message.params.uri}")
        elif getattr(message, "method", None) == "notifications/elicitation/complete":
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

    async with Client(
        reach(job["target"]),
        mode=era,
        logging_callback=on_log,
        message_handler=on_message,
        **answering,
    ) as client:
        await run(Peer(client, era, logs, seen), job["steps"])


perform_all(perform)
