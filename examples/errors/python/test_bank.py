"""Tests of a server: in memory, in every revision, without a process or a port."""

from __future__ import annotations

import pytest
from server import accounts, app

from gudgeon import Cancelled, Declined, ToolError
from gudgeon.testing import ERAS, connect, connect_sync

ASKING = [era for era in ERAS if era >= "2025-06-18"]  # the revisions in which a server may ask


@pytest.mark.parametrize("era", ERAS)
def test_withdraw(era: str) -> None:
    with connect_sync(app, revision=era) as client:
        assert client.call_tool("withdraw", {"name": "ada", "euros": 30}).text == "70"
        with pytest.raises(ToolError, match="Nobody here is called eve"):
            client.call_tool("withdraw", {"name": "eve", "euros": 1})


@pytest.mark.parametrize("era", ASKING)
@pytest.mark.parametrize("replay", [False, True])  # True: the handler runs from its top again for every answer
@pytest.mark.asyncio
async def test_close_account(era: str, replay: bool) -> None:
    answers = {"Close ada's account?": True, "Why do you leave?": "the coffee"}
    async with connect(app, revision=era, answers=answers, replay=replay) as client:
        closed = await client.call_tool("close_account", {"name": "ada"})
        assert closed.text == "closed, because: the coffee"
    async with connect(app, revision=era, answers={"sure": False, "reason": "-"}, replay=replay) as client:  # by key
        assert (await client.call_tool("close_account", {"name": "ada"})).text == "kept"


@pytest.mark.parametrize("era", ASKING)
@pytest.mark.parametrize(("no", "verb"), [(Declined(), "declined"), (Cancelled(), "dismissed")])
@pytest.mark.asyncio
async def test_who_does_not_answer_keeps_the_account(era: str, no: object, verb: str) -> None:
    async with connect(app, revision=era, answers={"Close ada's account?": no}) as client:
        with pytest.raises(ToolError, match=f"The user {verb}: Close ada's account"):
            await client.call_tool("close_account", {"name": "ada"})


def test_the_handlers_stay_functions() -> None:
    from server import withdraw

    assert withdraw("bob", 5) == accounts["bob"] - 5
