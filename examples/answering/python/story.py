"""A host that answers a server's questions: forms, sampling by a model, and roots that change."""

from __future__ import annotations

import asyncio
from typing import Any

from gudgeon import (
    Cancelled,
    Client,
    ElicitRequest,
    ListChanged,
    LogMessage,
    Progress,
    Root,
    SampleRequest,
    Target,
    ToolError,
)
from gudgeon.errors import McpError
from gudgeon.types import InputRequired

# Two processes of the museum, which continue each other's calls because they share a key.
PROCESSES = [{"GUDGEON_STATE_KEYS": "the museum's secret which is long"}] * 2


async def story(first: Target, second: Target, revision: Any) -> None:
    minutes: Any = 30
    logs: list[LogMessage] = []
    reports: list[Progress] = []
    changes: asyncio.Queue[ListChanged] = asyncio.Queue()

    async def on_elicit(request: ElicitRequest) -> Any:
        assert request.mode == "form" and request.schema["properties"]["value"]["type"] == "integer"
        return minutes  # a form with one field takes the bare value

    def on_sample(request: SampleRequest) -> str:
        assert list(request.models) == ["fast"] and request.max_tokens == 40
        return f"The Vermeers. ({request.messages[-1].text})"

    async with Client(
        first,
        revision=revision,
        on_elicit=on_elicit,
        on_sample=on_sample,
        roots=[Root("file:///home/ada", name="home")],
        on_log=logs.append,
        on_progress=reports.append,
        on_list_changed=changes.put_nowait,
    ) as visitor:
        plan = await visitor.call_tool("plan_visit")
        assert plan.text == "The Vermeers. (What can one see in 30 minutes?) Saved in home."

        # Roots change while the client is connected; the next question returns the new ones.
        visitor.set_roots([Root("file:///media/stick", name="stick")])
        assert (await visitor.call_tool("plan_visit")).text.endswith("Saved in stick.")

        while revision == "2025-11-25" and (await visitor.call_tool("last_place")).text != "file:///media/stick":
            await asyncio.sleep(0.01)

        # Closing the form is an answer as well.
        minutes = Cancelled()
        failed = await visitor.call_tool("plan_visit", raise_on_error=False)
        assert failed.is_error and "How many minutes do you have?" in failed.text

        await visitor.set_log_level("info")
        assert (await visitor.call_tool("tour", {"rooms": 3})).text == "That was all."
        assert [(report.progress, report.total, report.message) for report in reports] == [
            (n, 3, f"room {n}") for n in (1, 2, 3)
        ]
        assert [message.data for message in logs] == [{"message": "entered", "room": n} for n in (1, 2, 3)]

        async with visitor.subscribe(tools=True):  # sessions notify unasked; later revisions need a subscription
            await visitor.call_tool("open_room", {"name": "vermeer"})
            assert (await asyncio.wait_for(changes.get(), 10)).kind == "tools"
        assert (await visitor.call_tool("look_at_vermeer")).text == "You see vermeer."

    # A client that can't answer is not asked.
    async with Client(first, revision=revision) as mute:
        try:
            await mute.call_tool("plan_visit")
            raise AssertionError("a client that declared nothing must not be asked")
        except (ToolError, McpError) as error:
            assert "elicitation" in str(error), error

    # One round at a time. The answers may be sent by another program, days later, to another process.
    if revision == "2026-07-28":
        able: dict[str, Any] = {"on_elicit": on_elicit, "on_sample": on_sample, "roots": ["file:///home/ada"]}
        async with Client(first, **able) as asker, Client(second, **able) as answerer:
            round_1 = await asker.call_tool_round("plan_visit")
            assert isinstance(round_1, InputRequired) and list(round_1.questions) == ["minutes"]
            answers: dict[str, Any] = {"minutes": {"action": "accept", "content": {"value": 20}}}
            round_2 = await answerer.call_tool_round("plan_visit", answers=answers, state=round_1.state)
            assert isinstance(round_2, InputRequired) and list(round_2.questions) == ["sample-1", "roots-1"]
            answers = {
                "sample-1": {"role": "assistant", "content": {"type": "text", "text": "One."}, "model": "me"},
                "roots-1": {"roots": [{"uri": "file:///tmp", "name": "tmp"}]},
            }
            done = await answerer.call_tool_round("plan_visit", answers=answers, state=round_2.state)
            assert not isinstance(done, InputRequired) and done.text == "One. Saved in tmp."
    else:
        async with Client(first, revision=revision, on_elicit=lambda request: 5, on_sample=on_sample) as poor:
            # Without roots= the client declares no roots, so the server's question fails before it is sent.
            failed = await poor.call_tool("plan_visit", raise_on_error=False)
            assert failed.is_error and "roots" in failed.text, failed.text
