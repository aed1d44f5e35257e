"""A customer at the travel desk, who accepts, declines, and cancels."""

from __future__ import annotations

import asyncio
from typing import Any

from gudgeon import (
    Cancelled,
    Client,
    Declined,
    ElicitRequest,
    InputRequired,
    ProtocolError,
    SampleRequest,
    SampleResult,
    Target,
    ToolError,
    ToolResult,
)

TRIP = {"city": "Lisbon", "leave": "2027-05-04", "nights": 3, "seat": "window", "extras": ["breakfast"]}


async def again(customer: Client) -> None:
    """Answers that arrive twice, as after a broken connection. Between the rounds the client holds the state."""
    first = await customer.call_tool_round("change_booking")
    assert isinstance(first, InputRequired)
    day = {"elicit-1": {"action": "accept", "content": {"value": "2027-05-07"}}}
    for _ in range(2):  # the second one runs the handler again, but not its step
        done = await customer.call_tool_round("change_booking", answers=day, state=first.state)
        assert isinstance(done, ToolResult) and done.text == "2027-05-07, receipt 2, 2 in all"

    first = await customer.call_tool_round("last_seat")
    assert isinstance(first, InputRequired)
    yes = {"elicit-1": {"action": "accept", "content": {"value": True}}}
    done = await customer.call_tool_round("last_seat", answers=yes, state=first.state)
    assert isinstance(done, ToolResult) and done.text == "27A is yours"
    try:
        await customer.call_tool_round("last_seat", answers=yes, state=first.state)
        raise AssertionError("this handler must not run twice for one call")
    except ProtocolError as error:
        assert error.code == -32602


async def story(target: Target, revision: Any) -> None:
    answers: dict[str, Any] = {
        "Where do you want to go?": TRIP,
        "Lisbon for 255 euros?": True,
        "Name as in the passport?": "Ada Byron",
        "How many bags?": 2,
        "Which meal?": "fish",
        "Which day instead?": "2027-05-06",
        "The last seat. Take it?": True,
        "Cancel booking 7?": True,
        "Please pay at your bank.": {},  # a page has nothing to fill in: anything but a no means "I will go there"
    }
    asked: list[str] = []
    page_done = asyncio.Event()

    def on_elicit(request: ElicitRequest) -> Any:
        asked.append(request.message)
        if request.mode == "url":
            assert request.url == "https://bank.example/pay?euros=255"
        return answers[request.message]

    def on_sample(request: SampleRequest) -> SampleResult:
        assert request.system == "You are cheerful." and request.max_tokens == 60
        return SampleResult(f"Greetings! {request.messages[0].text}", model="pen-1")

    async with Client(
        target,
        revision=revision,
        on_elicit=on_elicit,
        on_sample=on_sample,
        on_url_done=lambda page: page_done.set(),
        roots=["file:///home/ada/trips"],
    ) as customer:

        async def say(tool: str, **arguments: Any) -> str:
            return (await customer.call_tool(tool, arguments)).text

        # A form with six fields, one of which has a default; then a boolean.
        assert await say("book_trip") == "Lisbon from 2027-05-04, window seat"
        assert asked == ["Where do you want to go?", "Lisbon for 255 euros?"]

        # Declining, closing the form, and the answer "false" are three different outcomes.
        for no, reply in (
            (Declined(), "Another trip, then?"),
            (Cancelled(), "The offer stands until tonight."),
            (False, "Nothing is booked."),
        ):
            answers["Lisbon for 255 euros?"] = no
            assert await say("book_trip") == reply

        # A refusal that the handler does not catch becomes the tool's error, which the model reads.
        answers["Where do you want to go?"] = Declined()
        try:
            await say("book_trip")
            raise AssertionError("a declined form must end the call")
        except ToolError as error:
            assert error.text == "The user declined: Where do you want to go?"

        asked.clear()
        assert await say("check_in") == "Ada Byron, 2 bags, fish"
        assert sorted(asked) == ["How many bags?", "Name as in the passport?", "Which meal?"]

        assert await say("pay", euros=255) == "255 euros are paid."
        if revision == "2025-11-25":
            await asyncio.wait_for(page_done.wait(), 10)

        assert await say("postcard", city="Lisbon") == "Greetings! A postcard from Lisbon. (pen-1)"
        assert await say("save_ticket") == "file:///home/ada/trips/ticket.pdf"
        assert await say("change_booking") == "2027-05-06, receipt 1, 1 in all"
        assert await say("last_seat") == "27A is yours"
        if revision == "2026-07-28":
            await again(customer)
        answers["The last seat. Take it?"] = Cancelled()
        failed = await customer.call_tool("last_seat", raise_on_error=False)
        assert failed.is_error and "The last seat. Take it?" in failed.text
        answers["The last seat. Take it?"] = True
        assert await say("last_seat") == "27A is yours"
        assert await say("cancel_trip", booking=7) == "cancelled"
        answers["Cancel booking 7?"] = False
        assert await say("cancel_trip", booking=7) == "kept"
