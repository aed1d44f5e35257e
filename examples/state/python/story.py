"""A client that begins a call at one process and continues at another, and one that modifies the state."""

from __future__ import annotations

from typing import Any

from gudgeon import Cancelled, Client, ElicitRequest, InputRequired, ProtocolError, Target
from gudgeon.errors import McpError

SUMMER, AUTUMN = "the key of the desks since summer", "the key of the desks since autumn"
PROCESSES = [
    {"LIBRARY_DESK": "north", "LIBRARY_KEYS": SUMMER},
    {"LIBRARY_DESK": "south", "LIBRARY_KEYS": SUMMER},
    {"LIBRARY_DESK": "new", "LIBRARY_KEYS": f"{AUTUMN},{SUMMER}"},  # in the middle of a rotation
    {"LIBRARY_DESK": "other", "LIBRARY_KEYS": AUTUMN},  # after it
]
BOOK = {"book": "Emma"}
READER = {"reader": {"action": "accept", "content": {"name": "Ada", "card": 7}}}
WEEKS = {"weeks": {"action": "accept", "content": {"value": 3}}}
FORMS: dict[str, Any] = {"Who are you?": {"name": "Ada", "card": 7}, "For how many weeks?": 3, "Is it damaged?": False}


async def story(north: Target, south: Target, new: Target, other: Target, revision: Any) -> None:
    def on_elicit(request: ElicitRequest) -> Any:
        return FORMS[request.message]

    def at(desk: Target) -> Client:
        return Client(desk, revision=revision, on_elicit=on_elicit)

    # A client that can't be asked borrows nothing.
    async with Client(north, revision=revision) as mute:
        try:
            await mute.call_tool("borrow", BOOK)
            raise AssertionError("a client without on_elicit= can't say who it is")
        except McpError as error:
            assert "elicitation" in str(error)

    # One client and one process: the same code in every revision, without a state.
    async with at(north) as reader:
        done = await reader.call_tool("borrow", BOOK)
        assert done.text == "loan of Emma at the north desk: Ada, 3 weeks, stamped at the north desk"
        assert (await reader.call_tool("give_back", BOOK)).text == "Emma: shelf, says the north desk"
        # Closing the form cancels, in every revision.
        form = FORMS["Is it damaged?"]
        FORMS["Is it damaged?"] = Cancelled()
        kept = await reader.call_tool("give_back", BOOK, raise_on_error=False)
        assert kept.is_error and "Is it damaged?" in kept.text
        FORMS["Is it damaged?"] = form
        if revision == "2025-11-25":
            # In a session the server asks while the call runs: there are no rounds, and so no state.
            at_once = await reader.call_tool_round("borrow", BOOK)
            assert not isinstance(at_once, InputRequired) and at_once.text == done.text
            return

    async with at(north) as one, at(south) as two, at(new) as three, at(other) as four:
        # Begun at the north desk, continued at the south desk, which runs the handler again with the answers so far;
        # the loan remains the one that the north desk registered.
        first = await one.call_tool_round("borrow", BOOK)
        assert isinstance(first, InputRequired) and list(first.questions) == ["reader"] and first.state
        second = await two.call_tool_round("borrow", BOOK, answers=READER, state=first.state)
        assert isinstance(second, InputRequired) and list(second.questions) == ["weeks"] and second.state
        # During a key rotation the new desk still decrypts states of the old key.
        third = await three.call_tool_round("borrow", BOOK, answers=WEEKS, state=second.state)
        assert not isinstance(third, InputRequired)
        assert third.text == "loan of Emma at the north desk: Ada, 3 weeks, stamped at the new desk"

        # The explicit form needs no suspended handler and no replay; its state is sent in the same way.
        asked = await one.call_tool_round("give_back", BOOK)
        assert isinstance(asked, InputRequired)
        yes = {"damaged": {"action": "accept", "content": {"value": True}}}
        told = await two.call_tool_round("give_back", BOOK, answers=yes, state=asked.state)
        assert not isinstance(told, InputRequired) and told.text == "Emma: repair, says the south desk"

        # The new desk encrypts with the new key: desks without it can't decrypt the state.
        later = await three.call_tool_round("borrow", BOOK)
        assert isinstance(later, InputRequired) and later.state
        assert isinstance(await four.call_tool_round("borrow", BOOK, answers=READER, state=later.state), InputRequired)

        # Closing the form cancels, at whichever desk it is answered.
        closed = {"reader": {"action": "cancel"}}
        given_up = await two.call_tool_round("borrow", BOOK, answers=closed, state=first.state, raise_on_error=False)
        assert not isinstance(given_up, InputRequired) and given_up.is_error and "Who are you?" in given_up.text

        # Rejected, always with the same message: another key, a modified state, other arguments, another tool.
        middle = len(first.state) // 2
        letter = "A" if first.state[middle] != "A" else "B"
        forged = first.state[:middle] + letter + first.state[middle + 1 :]
        for client, tool, book, state in (
            (four, "borrow", BOOK, first.state),
            (one, "borrow", BOOK, later.state),
            (two, "borrow", BOOK, forged),
            (two, "borrow", {"book": "Dune"}, first.state),
            (two, "give_back", BOOK, first.state),
        ):
            try:
                await client.call_tool_round(tool, book, answers=READER, state=state)
                raise AssertionError("this state must be refused")
            except ProtocolError as error:
                assert error.code == -32602 and "Invalid or expired requestState" in str(error), error
