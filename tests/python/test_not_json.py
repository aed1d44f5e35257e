"""Numbers that JSON has no word for are errors that name their place, wherever they would be sent; never null."""

from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
import pytest

from eventually import eventually
from gudgeon import Context, ProtocolError, Server, SyncClient, SyncContext, ToolError
from gudgeon._model.json import encode
from gudgeon.middleware import Next, Request
from gudgeon.types import ToolResult

NAN, INFINITY = float("nan"), float("inf")


@dataclass
class Point:
    x: float
    y: float | None = None


class Struct(msgspec.Struct):
    x: float | None


class Model(pydantic.BaseModel):
    x: float
    y: None = None


class Bare(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="constants")
    x: float


class Told(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(ser_json_inf_nan="strings")
    x: float
    y: None = None


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (NAN, "the value is nan"),
        (-INFINITY, "the value is -inf"),
        ([None, 1.5, [INFINITY]], "the value[2][0] is inf"),
        ({"a": None, "b c": {"d": (NAN,)}}, "the value['b c'].d[0] is nan"),
        (Point(NAN), "the value.x is nan"),
        (Struct(NAN), "the value.x is nan"),
        (Model(x=NAN), "the value.x is nan"),
        ({"m": [Model(x=NAN)]}, "the value.m[0].x is nan"),
        (Bare(x=INFINITY), "the value.x is inf"),
        ({"big": 2**70, "x": NAN}, "the value.x is nan"),
    ],
)
def test_what_is_no_number_in_json_is_named(value: Any, place: str) -> None:
    with pytest.raises(ValueError) as caught:
        encode(value)
    assert str(caught.value) == f"{place}, which JSON can't represent; write None or a string"


def test_what_json_can_say_is_said() -> None:
    assert encode([None, 1.5, "nan", 2**70, {"x": None, "null": "null"}]) == (
        b'[null,1.5,"nan",1180591620717411303424,{"x":null,"null":"null"}]'
    )
    assert encode({"said": Told(x=NAN), "in": Point(1.0)}) == b'{"said":{"x":"NaN","y":null},"in":{"x":1.0,"y":null}}'


def app() -> Server:
    app = Server("numbers")

    @app.tool
    def plain() -> dict[str, Any]:
        return {"mean": NAN}

    @app.tool
    def number() -> float:
        return INFINITY

    @app.tool
    def model() -> Any:
        return Model(x=NAN)

    @app.tool
    def bare() -> Any:
        return Bare(x=NAN)

    @app.tool
    def told() -> Told:
        return Told(x=NAN)

    @app.tool
    def whole() -> ToolResult:
        return ToolResult("here", structured_content={"means": [NAN]})

    @app.tool
    def step(ctx: SyncContext) -> Any:
        return ctx.step("s", lambda: [NAN])

    @app.tool
    def log(ctx: SyncContext) -> None:
        ctx.info({"mean": NAN})

    @app.tool
    def far(ctx: SyncContext) -> None:
        ctx.progress(1, total=NAN)

    @app.tool
    async def near(ctx: Context) -> None:
        ctx.progress(NAN)

    @app.tool
    def echo(x: Any) -> Any:
        return x

    @app.resource("numbers://one")
    def one() -> dict[str, Any]:
        return {"mean": NAN}

    @app.method("acme/mean")
    def mean() -> dict[str, Any]:
        return {"mean": NAN}

    return app


@pytest.mark.parametrize(
    ("tool", "why"),
    [
        ("plain", "the result.mean is nan"),
        ("number", "the result is inf"),
        ("model", "the result.x is nan"),
        ("bare", "the result.x is nan"),
        ("whole", "the result.structuredContent.means[0] is nan"),
        ("step", "step 's' can't be remembered: the result[0] is nan"),
        ("log", "the logged value.mean is nan"),
        ("far", "progress(1.0, total=nan): both must be finite numbers"),
        ("near", "progress(nan, total=None): both must be finite numbers"),
    ],
)
def test_a_tool_fails_with_the_place_in_its_log(tool: str, why: str, caplog: pytest.LogCaptureFixture) -> None:
    with SyncClient(app(), on_progress=print) as client, pytest.raises(ToolError, match="Error \\(reference "):
        client.call_tool(tool)
    eventually(lambda: why in caplog.text)


def test_what_a_model_says_of_such_numbers_itself_is_said() -> None:
    with SyncClient(app()) as client:
        assert client.call_tool("told", raise_on_error=False).is_error  # its schema still says number
        app_ = Server("told")
        app_.tool(lambda: Told(x=NAN), name="told")
    with SyncClient(app_) as client:
        assert client.call_tool("told").structured_content == {"x": "NaN", "y": None}


def test_resources_and_methods_fail_as_well(caplog: pytest.LogCaptureFixture) -> None:
    with SyncClient(app()) as client:
        with pytest.raises(ProtocolError, match="reference"):
            client.read_resource("numbers://one")
        with pytest.raises(ProtocolError, match="reference"):
            client.request("acme/mean")
    eventually(lambda: caplog.text.count("the result.mean is nan") >= 2)


def test_middleware_can_not_bring_one_in(caplog: pytest.LogCaptureFixture) -> None:
    server = app()

    @server.middleware(on="tools/call")
    async def spoils(request: Request, next: Next) -> Any:
        await next(request)
        return ToolResult("x", structured_content={"mean": NAN})

    with SyncClient(server) as client, pytest.raises((ProtocolError, ToolError)):
        client.call_tool("echo", {"x": 1})
    eventually(lambda: "mean is nan" in caplog.text)


def test_a_client_sends_none() -> None:
    with SyncClient(app()) as client:
        with pytest.raises(ValueError, match=r"arguments\.x\[1\] is nan, which JSON can't represent"):
            client.call_tool("echo", {"x": [None, NAN]})
        with pytest.raises(ValueError, match="the params.x is inf, which JSON can't represent"):
            client.notify("acme/thing", {"x": INFINITY})
        assert client.call_tool("echo", {"x": [None, 1.5]}).data == [None, 1.5]


def test_no_answer_holds_one(caplog: pytest.LogCaptureFixture) -> None:
    server = Server("asks")

    @server.tool
    async def asks(ctx: Context) -> float:
        return await ctx.elicit("How far?", float)

    with SyncClient(server, on_elicit=lambda _: NAN) as client, pytest.raises(ProtocolError, match="ValueError"):
        client.call_tool("asks")
    eventually(lambda: "the answer is nan, which JSON can't represent" in caplog.text)
