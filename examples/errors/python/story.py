"""A client whose calls all fail, and the errors that it catches."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, TypeVar

from gudgeon import Cancelled, Client, Declined, Target, ToolError
from gudgeon.errors import CallTimeout, McpError, NotSupported, ProtocolError

_E = TypeVar("_E", bound=McpError)


async def failure(kind: type[_E], call: Awaitable[object]) -> _E:
    """Returns the error that the call must fail with."""
    try:
        await call
    except kind as error:
        return error
    raise AssertionError(f"expected {kind.__name__}")


async def story(target: Target, revision: Any) -> None:
    modern = revision == "2026-07-28"
    no: Declined | Cancelled = Declined()
    async with Client(target, revision=revision, on_elicit=lambda request: no) as customer:
        call = customer.call_tool
        assert (await call("withdraw", {"name": "ada", "euros": 30})).data == 70

        # Errors that the model can correct: it reads their text.
        unknown = await failure(ToolError, call("withdraw", {"name": "eve", "euros": 1}))
        assert unknown.text == "Nobody here is called eve." and unknown.result.meta["bank.example/known"] == 2
        exposed = await failure(ToolError, call("withdraw", {"name": "bob", "euros": 30}))
        assert exposed.text == "bob has 20 euros"
        misfit = await failure(ToolError, call("withdraw", {"name": "bob", "euros": "all"}))
        assert "euros" in misfit.text
        # The same error as a result, without an exception.
        assert (await call("withdraw", {"name": "eve", "euros": 1}, raise_on_error=False)).is_error

        # Unexpected exceptions of the server: the client gets their type and a reference id only.
        ours = await failure(ToolError, call("audit"))
        assert "reference" in ours.text and "division" not in ours.text
        in_prompt = await failure(ProtocolError, customer.get_prompt("reminder", {"name": "ada"}))
        assert in_prompt.code == -32603 and "template" not in str(in_prompt)
        late = await failure(ToolError, call("loan"))
        assert "took longer" in late.text

        # Protocol errors, for the program: code, data, target and phase.
        closed = await failure(ProtocolError, call("transfer", {"euros": 5}))
        assert (closed.code, closed.data) == (4001, {"opens": "09:00"}) and "The counter is closed." in str(closed)
        nowhere = await failure(ProtocolError, call("rob"))
        assert nowhere.code == -32602 and "rob" in str(nowhere)
        assert (await customer.read_resource("bank://accounts/bob")).text == "20 euros"
        lost = await failure(McpError, customer.read_resource("bank://accounts/eve"))
        assert lost.code == (-32602 if modern else -32002) and lost.data == {"uri": "bank://accounts/eve"}

        # A refusal that the handler does not catch, and a form that is closed.
        kept = await failure(ToolError, call("close_account", {"name": "ada"}))
        assert kept.text == "The user declined: Close ada's account?"
        no = Cancelled()
        kept = await failure(ToolError, call("close_account", {"name": "ada"}))
        assert kept.text == "The user dismissed: Close ada's account?"

        # Timeouts and cancellation: the handler ends as well, and cleans up.
        async def at_the_expert() -> str:
            return (await customer.read_resource("bank://expert")).text

        await failure(CallTimeout, call("appraise", {"thing": "vase"}, timeout=0.1))
        ring = asyncio.create_task(call("appraise", {"thing": "ring"}))
        while "ring" not in await at_the_expert():
            await asyncio.sleep(0.01)
        ring.cancel()
        while await at_the_expert() != "[]":
            await asyncio.sleep(0.01)

    # A client that can't be asked; the error depends on the revision.
    async with Client(target, revision=revision) as mute:
        refused = await failure(McpError, mute.call_tool("close_account", {"name": "ada"}))
        assert "elicitation" in str(refused) and (refused.code == -32021 if modern else isinstance(refused, ToolError))
        # A call whose capability the server did not declare fails before it is sent.
        unable = await failure(NotSupported, mute.complete("reminder", "name", "a"))
        assert "completions" in str(unable)
