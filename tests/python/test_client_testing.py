import asyncio
import contextlib
import json
import re

import pytest

from gudgeon import Context, Server, SyncContext, ask
from gudgeon.errors import CallTimeout, Declined, ProtocolError, ToolError
from gudgeon.testing import ERAS, Faults, Recorder, connect, connect_sync
from gudgeon.types import Principal, Root, SampleResult

ASKING = ("2025-06-18", "2025-11-25", "2026-07-28")
MODERN = "2026-07-28"


@pytest.fixture
def app():
    app = Server("shelf")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    return app


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_is_pinned_to_its_revision(app, era):
    async with connect(app, revision=era) as client:
        assert client.revision == era
        assert (await client.call_tool("add", {"a": 1, "b": 2}, returns=int)).data == 3
    with connect_sync(app, revision=era) as blocking:
        assert blocking.revision == era


def test_the_newest_revision_is_the_usual_one(app):
    with connect_sync(app) as client:
        assert client.revision == ERAS[-1]


@pytest.mark.parametrize("face", ["async", "sync"])
def test_a_recorder_writes_a_transcript(app, tmp_path, face):
    path = tmp_path / "talk.txt"
    if face == "sync":
        with connect_sync(app, revision="2025-11-25", recorder=Recorder(path)) as client:
            client.call_tool("add", {"a": 1, "b": 2})
    else:

        async def main():
            async with connect(app, revision="2025-11-25", recorder=Recorder(path)) as client:
                await client.call_tool("add", {"a": 1, "b": 2})

        asyncio.run(main())
    lines = path.read_text().splitlines()
    assert [line[0] for line in lines[:5]] == [">", "<", ">", ">", "<"]
    frames = [json.loads(line[2:]) for line in lines]
    assert frames[0]["method"] == "initialize" and frames[3]["params"]["name"] == "add"
    assert frames[4]["id"] == frames[3]["id"]


@pytest.mark.io
async def test_lost_messages_are_lost_and_doubled_ones_do_no_harm(app):
    async with connect(app, faults=Faults(duplicate=1)) as client:
        for n in range(10):
            assert (await client.call_tool("add", {"a": n, "b": 1})).data == n + 1
    outcomes = []
    for _ in range(2):
        lost = []
        async with connect(app, revision="2025-11-25", faults=Faults(seed=1, drop=0.4)) as client:
            # One after the other, because calls that are made at once may be sent in another order.
            for n in range(3):
                try:
                    await client.call_tool("add", {"a": n, "b": 1}, timeout=3)
                except CallTimeout:
                    lost.append(n)
        outcomes.append(lost)
    assert outcomes[0] == outcomes[1] and 0 < len(outcomes[0]) < 3


@pytest.mark.io
async def test_messages_get_lost_and_come_twice_in_both_directions(tmp_path):
    app, runs = Server("counts"), []

    @app.tool
    def count(n: int) -> int:
        runs.append(n)
        return n

    path = tmp_path / "talk.txt"
    faults = Faults(seed=5, drop=0.3, duplicate=0.3)
    async with connect(app, revision="2025-11-25", faults=faults, recorder=Recorder(path)) as client:
        for n in range(12):
            with contextlib.suppress(CallTimeout):
                await client.call_tool("count", {"n": n}, timeout=1)
    said = [json.loads(line[2:]) for line in path.read_text().splitlines() if line[0] == ">"]
    asked = [message["params"]["arguments"]["n"] for message in said if message.get("method") == "tools/call"]
    assert asked == list(range(12))
    assert set(asked) - set(runs), "no request was lost"
    assert len(runs) > len(set(runs)), "no request came twice"


def test_invalid_options_are_rejected(app):
    with pytest.raises(ValueError, match="2024-11-05"):
        connect(app, revision="2020-01-01")
    with pytest.raises(TypeError, match="takes a Server"):
        connect("http://127.0.0.1/mcp")
    with pytest.raises(ValueError):
        Faults(drop=2)
    for options in ({"answers": ["Sure?"]}, {"faults": 0.5}, {"recorder": "said.txt"}):
        with pytest.raises(TypeError, match=next(iter(options))):
            connect(app, **options)


def test_the_newest_revision_that_the_server_speaks_is_the_usual_one():
    with connect_sync(Server("old", revisions=["2025-03-26", "2025-06-18"])) as client:
        assert client.revision == "2025-06-18"


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────


def asking(runs):
    """Asks everything; `runs` grows with each run."""
    app = Server("asks")

    @app.tool
    async def everything(ctx: Context) -> list[str]:
        runs.append("async")
        sure, name = await ctx.ask(ask.elicit("Sure?", bool), ask.elicit("Name?", str, key="user_name"))
        again = await ctx.elicit("Really?", bool)
        said = await ctx.sample("Say it nicely.")
        roots = await ctx.roots()
        return [str(sure), name, str(again), said.text, *(root.uri for root in roots)]

    @app.tool
    def everything_sync(ctx: SyncContext) -> list[str]:
        runs.append("sync")
        sure, name = ctx.ask(ask.elicit("Sure?", bool), ask.elicit("Name?", str, key="user_name"))
        again = ctx.elicit("Really?", bool)
        said = ctx.sample("Say it nicely.")
        roots = ctx.roots()
        return [str(sure), name, str(again), said.text, *(root.uri for root in roots)]

    return app


BY_KEY = {
    "elicit-1": True,
    "user_name": "Eve",
    "elicit-2": {"value": False},
    "sample-1": "Please.",
    "roots-1": ["file:///a"],
}
BY_MESSAGE = {
    "Sure?": lambda request: request.message == "Sure?",
    "Name?": "Eve",
    "Really?": False,
    "Say it nicely.": SampleResult("Please.", model="m"),
    "roots": [Root("file:///a")],
}
ALL = ["True", "Eve", "False", "Please.", "file:///a"]


@pytest.mark.parametrize("answers", [BY_KEY, BY_MESSAGE], ids=["key", "message"])
@pytest.mark.parametrize("era", ASKING)
async def test_questions_are_answered_by_key_or_message_in_every_era(era, answers):
    runs = []
    async with connect(asking(runs), revision=era, answers=answers) as client:
        assert (await client.call_tool("everything", returns=list[str])).data == ALL
        assert (await client.call_tool("everything_sync", returns=list[str])).data == ALL
    assert runs == ["async", "sync"]
    with connect_sync(asking(runs), revision=era, answers=answers) as blocking:
        assert blocking.call_tool("everything", returns=list[str]).data == ALL
        assert blocking.call_tool("everything_sync", returns=list[str]).data == ALL


def test_a_key_comes_before_the_message():
    with connect_sync(asking([]), answers={**BY_KEY, "Name?": "Adam"}) as client:
        assert client.call_tool("everything", returns=list[str]).data[1] == "Eve"


@pytest.mark.parametrize("era", ASKING)
def test_declining_is_an_answer(era):
    for no in (Declined, Declined("no")):
        with connect_sync(asking([]), revision=era, answers={**BY_KEY, "Sure?": no, "elicit-1": no}) as client:
            with pytest.raises(ToolError, match=r"declined: Sure\?"):
                client.call_tool("everything")


@pytest.mark.parametrize("era", ASKING)
def test_questions_come_twice_and_do_no_harm(era):
    app, side = Server("shelf"), []

    @app.tool
    async def order(ctx: Context) -> str:
        number = await ctx.step("number", lambda: side.append(1) or len(side))
        name = await ctx.elicit("Name?", str, key="name")
        return f"{number} {name} {await ctx.elicit('Sure?', bool)}"

    with connect_sync(app, revision=era, answers={"name": "Ada", "Sure?": True}, faults=Faults(duplicate=1)) as client:
        for _ in range(3):
            assert client.call_tool("order").text.endswith("Ada True")


def test_errors_name_the_server_behind_the_wire(tmp_path):
    app = Server("shelf")
    for options in ({}, {"recorder": Recorder(tmp_path / "said.txt")}):
        with connect_sync(app, **options) as client, pytest.raises(ProtocolError) as caught:
            client.request("acme/nowhere")
        assert caught.value.target == "Server('shelf')"


@pytest.mark.parametrize("era", ASKING)
def test_a_question_without_an_answer_says_which(era):
    with connect_sync(asking([]), revision=era, answers={"Sure?": True}) as client:
        with pytest.raises((ProtocolError, ToolError), match=r"'Name\?' \(key 'user_name'\).*'Sure\?'"):
            client.call_tool("everything")


def test_without_answers_nothing_is_declared():
    app = Server("asks")

    @app.tool
    def can(ctx: SyncContext) -> list[str]:
        return sorted(ctx.client.capabilities)

    for answers, expected in ((None, []), ({}, ["elicitation", "roots", "sampling"])):
        with connect_sync(app, revision="2025-11-25", answers=answers) as client:
            assert client.call_tool("can", returns=list[str]).data == expected


# ── replay and restart ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("era", ASKING)
async def test_replay_runs_the_handler_anew_for_every_round(era):
    runs = []
    async with connect(asking(runs), revision=era, answers=BY_KEY, replay=True) as client:
        assert (await client.call_tool("everything", returns=list[str])).data == ALL
        assert (await client.call_tool("everything_sync", returns=list[str])).data == ALL
    # Two questions are one round: five runs of each.
    assert runs == (["async"] * 5 + ["sync"] * 5 if era == MODERN else ["async", "sync"])


def test_steps_are_not_repeated_by_a_replay():
    app, charged = Server("shop"), []

    @app.tool
    async def buy(ctx: Context) -> str:
        receipt = await ctx.step("charge", charge, 3)
        return f"{receipt} {await ctx.elicit('Gift?', bool)} {await ctx.elicit('Card?', bool)}"

    def charge(amount: int) -> str:
        charged.append(amount)
        return f"paid {amount}"

    with connect_sync(app, answers={"Gift?": True, "Card?": False}, replay=True) as client:
        assert client.call_tool("buy").text == "paid 3 True False"
    assert charged == [3]


def test_a_tool_that_must_not_be_replayed_does_not_ask():
    app, runs = Server("once"), []

    @app.tool(replay="forbid")
    async def once(ctx: Context) -> bool:
        runs.append(1)
        return await ctx.elicit("Sure?", bool)

    with connect_sync(app, answers={"Sure?": True}) as client:
        assert client.call_tool("once", returns=bool).data is True
    with connect_sync(app, answers={"Sure?": True}, replay=True) as client, pytest.raises(ToolError):
        client.call_tool("once")
    assert runs == [1, 1]


@pytest.mark.parametrize("face", ["async", "sync"])
def test_a_server_that_restarts_between_rounds_goes_on(face):
    runs, lives = [], []

    @contextlib.asynccontextmanager
    async def life(server):
        lives.append("begins")
        yield
        lives.append("ends")

    app = Server("asks", lifespan=life)

    @app.tool
    async def greet(ctx: Context) -> str:
        runs.append(1)
        return f"{await ctx.elicit('Name?', str)} {await ctx.elicit('Age?', int)}"

    answers = {"Name?": "Eve", "Age?": 3}
    faults = Faults(restart_between_rounds=True)
    if face == "sync":
        with connect_sync(app, answers=answers, faults=faults) as client:
            assert client.call_tool("greet").text == "Eve 3"
            assert client.call_tool("greet").text == "Eve 3"
    else:

        async def main():
            async with connect(app, answers=answers, faults=faults) as client:
                assert (await client.call_tool("greet")).text == "Eve 3"
                assert (await client.call_tool("greet")).text == "Eve 3"

        asyncio.run(main())
    assert runs == [1] * 6
    assert lives == ["begins", "ends"] * 5


def test_calls_under_way_survive_a_restart():
    app = Server("asks")
    started, go = asyncio.Event(), asyncio.Event()

    @app.tool
    async def slow() -> str:
        started.set()
        await go.wait()
        return "done"

    @app.tool
    async def greet(ctx: Context) -> str:
        return await ctx.elicit("Name?", str)

    def name(request):
        go.set()
        return "Eve"

    async def main():
        async with connect(app, answers={"Name?": name}, faults=Faults(restart_between_rounds=True)) as client:
            under_way = asyncio.ensure_future(client.call_tool("slow"))
            await started.wait()
            assert (await client.call_tool("greet")).text == "Eve"
            assert (await under_way).text == "done"

    asyncio.run(main())


@pytest.mark.parametrize("era", ("2025-06-18", "2025-11-25"))
def test_where_there_are_no_rounds_nothing_restarts(era):
    runs = []
    with connect_sync(asking(runs), revision=era, answers=BY_KEY, faults=Faults(restart_between_rounds=True)) as client:
        assert client.call_tool("everything", returns=list[str]).data == ALL
    assert runs == ["async"]


# ── who calls, headers, log ──────────────────────────────────────────────────────────────────────────


def whoami(app):
    @app.tool
    def whoami(ctx: SyncContext) -> list[str]:
        ctx.info("asked")
        return [ctx.principal.subject if ctx.principal else "nobody", ctx.headers.get("X-Tenant", "none")]

    @app.tool(visible=lambda who: who is not None and "staff" in who.scopes)
    def restock() -> str:
        return "done"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("more", [{}, {"faults": Faults()}], ids=["memory", "tapped"])
async def test_a_test_chooses_the_principal_and_the_headers_of_its_calls(era, more):
    app, ada = Server("shelf"), Principal("ada", scopes=["staff"])
    whoami(app)
    async with connect(app, revision=era, principal=ada, headers={"X-Tenant": "north"}, **more) as client:
        assert (await client.call_tool("whoami", returns=list[str])).data == ["ada", "north"]
        assert (await client.call_tool("restock")).text == "done"
        assert [tool.name for tool in await client.list_tools()] == ["whoami", "restock"]
    with connect_sync(app, revision=era, principal=Principal("bob"), **more) as blocking:
        assert blocking.call_tool("whoami", returns=list[str]).data == ["bob", "none"]
        assert [tool.name for tool in blocking.list_tools()] == ["whoami"]
    with connect_sync(app, revision=era, **more) as blocking:
        assert blocking.call_tool("whoami", returns=list[str]).data == ["nobody", "none"]


@pytest.mark.parametrize("era", ERAS)
def test_a_test_reads_the_log(era):
    app, lines = Server("shelf"), []
    whoami(app)
    with connect_sync(app, revision=era, on_log=lines.append) as client:
        client.call_tool("whoami")
    assert [(line.level, line.data) for line in lines] == [("info", "asked")]


@pytest.mark.parametrize("connecting", [connect, connect_sync])
def test_wrong_options_of_connect_are_refused_with_the_fix(app, connecting):
    wrong = [
        ({"era": "2025-11-25"}, "connect(): unknown option 'era'; did you mean 'revision'?"),
        ({"anwsers": {}}, "connect(): unknown option 'anwsers'; did you mean 'answers'?"),
        ({"middlewares": []}, "connect(): unknown option 'middlewares'; did you mean 'middleware'?"),
        ({"answers": {}, "roots": []}, "connect(): answers= answers every question, so roots= is never called"),
        ({"principal": "ada"}, "connect(): principal= takes a Principal, not 'ada'"),
        ({"headers": ["a"]}, "connect(): headers= is a mapping"),
        ({"headers": {"a": 1}}, "connect(): headers= takes strings, not {'a': 1}"),
        ({"on_log": 1}, "connect(): on_log= is a function"),
    ]
    for options, text in wrong:
        with pytest.raises(TypeError, match=re.escape(text)):
            connecting(app, **options)
    for headers in ({"no good": "x"}, {"x": "no\ngood"}):
        with pytest.raises(ValueError, match="valid HTTP header"):
            connecting(app, headers=headers)


def test_a_test_takes_every_option_of_a_client():
    app, seen = Server("shelf"), []
    app.tool(lambda: "ok", name="go")

    def noting(request, next):
        seen.append(request.method)
        return next(request)

    with connect_sync(app, middleware=[noting], timeout=5, on_elicit=lambda request: True) as client:
        client.call_tool("go")
    assert seen == ["tools/call"]
