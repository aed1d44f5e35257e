import asyncio
import json

import pytest

from gudgeon import Server
from gudgeon.errors import CallTimeout, NotSupported
from gudgeon.testing import ERAS, Faults, Recorder, connect, connect_sync


@pytest.fixture
def app():
    app = Server("shelf")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    return app


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_pinned_to_its_revision(app, era):
    async with connect(app, era=era) as client:
        assert client.revision == era
        assert (await client.call_tool("add", {"a": 1, "b": 2}, returns=int)).data == 3
    with connect_sync(app, era=era) as blocking:
        assert blocking.revision == era


def test_the_newest_revision_is_the_usual_one(app):
    with connect_sync(app) as client:
        assert client.revision == ERAS[-1]


@pytest.mark.parametrize("face", ["async", "sync"])
def test_a_recorder_writes_a_transcript(app, tmp_path, face):
    path = tmp_path / "talk.txt"
    if face == "sync":
        with connect_sync(app, era="2025-11-25", recorder=Recorder(path)) as client:
            client.call_tool("add", {"a": 1, "b": 2})
    else:

        async def main():
            async with connect(app, era="2025-11-25", recorder=Recorder(path)) as client:
                await client.call_tool("add", {"a": 1, "b": 2})

        asyncio.run(main())
    lines = path.read_text().splitlines()
    assert [line[0] for line in lines[:5]] == [">", "<", ">", ">", "<"]
    frames = [json.loads(line[2:]) for line in lines]
    assert frames[0]["method"] == "initialize" and frames[3]["params"]["name"] == "add"
    assert frames[4]["id"] == frames[3]["id"]


async def test_lost_messages_are_lost_and_doubled_ones_do_no_harm(app):
    async with connect(app, faults=Faults(duplicate=1)) as client:
        for n in range(10):
            assert (await client.call_tool("add", {"a": n, "b": 1})).data == n + 1
    outcomes = []
    for _ in range(2):
        lost = []
        async with connect(app, era="2025-11-25", faults=Faults(seed=3, drop=0.4)) as client:
            for n in range(10):
                try:
                    await client.call_tool("add", {"a": n, "b": 1}, timeout=0.1)
                except CallTimeout:
                    lost.append(n)
        outcomes.append(lost)
    assert outcomes[0] == outcomes[1] and 0 < len(outcomes[0]) < 10


def test_what_can_not_be_meant_is_refused(app):
    with pytest.raises(ValueError, match="2024-11-05"):
        connect(app, era="2020-01-01")
    with pytest.raises(ValueError):
        Faults(drop=2)
    with pytest.raises(NotSupported):
        connect(app, replay=True)
