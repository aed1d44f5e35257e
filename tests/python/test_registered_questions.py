"""A question whose type a handler's annotations name: what no form can ask fails at registration."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import pytest

from gudgeon import Client, Context, Depends, Server, SyncContext, ask
from gudgeon.ask import Question
from gudgeon.errors import NotSupported, ToolError
from gudgeon.types import Root, SampleResult

if TYPE_CHECKING:
    from test_forms import Nested, Order

T = TypeVar("T")
PROBLEM = (
    'the form "Nested" can\'t be asked: its property "order" is an object, and a form asks for strings, numbers, '
    "booleans, choices and lists of choices, without nesting: ask for its parts as properties of their own, or in a "
    "question of their own"
)


@dataclasses.dataclass
class Picked:
    toppings: list[Literal["ham", "olives"]]


def one() -> Question[Nested]: ...
def union() -> str | Question[Nested]: ...
def several() -> str | list[Question[bool] | Question[Nested]]: ...
def pair() -> tuple[Question[bool], Question[Nested]]: ...
def annotated() -> Annotated[str | Question[Nested], "what it gives"]: ...
def optional() -> Question[Nested | None]: ...
def text() -> "str | Question['Nested']": ...  # noqa: UP037
def module() -> ask.Question[Nested]: ...
async def waits(ctx: Context) -> str | Question[Nested]: ...


@pytest.mark.parametrize("fn", [one, union, several, pair, annotated, optional, text, module, waits])
def test_a_tool_that_returns_a_question_that_no_form_can_ask(fn: Any) -> None:
    with pytest.raises(TypeError) as told:
        Server("asks").tool(fn)
    place = f"{fn.__name__!r} (test_registered_questions.py:{fn.__code__.co_firstlineno})"
    assert str(told.value) == f"the return annotation of {place}: {PROBLEM}"


def test_so_is_one_that_output_names() -> None:
    from test_forms import Nested

    with pytest.raises(TypeError, match="^output= of 'plain' .*: the form \"Nested\" can't be asked"):
        Server("asks").tool(output=str | Question[Nested])(plain)


def test_every_kind_of_handler_is_looked_at() -> None:
    app = Server("asks")
    app.prompt(name="known")(lambda: "")
    for register in (
        app.prompt,
        app.resource("asks://one"),
        app.method("acme/ask"),
        app.notification("acme/asked"),
        app.on_roots_changed,
    ):
        with pytest.raises(TypeError, match="^the return annotation of 'union' .*: the form \"Nested\" can't be asked"):
            register(union)


def made(ctx: SyncContext) -> Question[Nested]: ...
def opened() -> Iterator[Question[Nested]]: ...
def plain() -> Any: ...


def test_so_are_dependencies() -> None:
    def by_provider(q: Annotated[Any, Depends(made)]) -> str: ...
    def by_generator(q: Annotated[Any, Depends(opened)]) -> str: ...
    def by_parameter(q: Annotated[Question[Nested], Depends(plain)]) -> str: ...

    for fn, where in (
        (by_provider, "the return annotation of 'made'"),
        (by_generator, "the return annotation of 'opened'"),
        (by_parameter, "parameter 'q' of 'by_parameter'"),
    ):
        with pytest.raises(TypeError, match=f'^{where} .*: the form "Nested" can\'t be asked'):
            Server("asks").tool(fn)


def order() -> str | Question[Order]: ...
def choices() -> Question[Picked] | Question[list[Literal["a", "b"]]]: ...
def others() -> Question[SampleResult] | Question[list[Root]] | Question[str]: ...
def mixed() -> str | list[Question[bool | SampleResult | list[Root]]]: ...
def schema() -> Question[dict[str, Any]] | Question[Any] | Question: ...  # type: ignore[type-arg]
def generic(of: Annotated[Any, Depends(plain)]) -> Question[T]: ...  # type: ignore[type-var]


@pytest.mark.parametrize("fn", [order, choices, others, mixed, schema, generic])
def test_what_some_revision_can_ask_passes(fn: Any) -> None:
    Server("asks").tool(fn)


async def test_what_one_revision_lacks_fails_there_at_the_call_before_anything_is_sent() -> None:
    app = Server("asks")

    @app.tool
    def pizza(ctx: SyncContext) -> str | Question[Picked]:
        wanted = ask.elicit("Which toppings?", Picked)
        found = ctx.answer(wanted)
        return wanted if found is None else " ".join(found.toppings)

    @app.tool
    async def asked(ctx: Context) -> str:
        try:
            return " ".join((await ctx.elicit("Which toppings?", Picked)).toppings)
        except NotSupported as error:
            return str(error)

    @app.tool
    async def nested(ctx: Context) -> str:
        with pytest.raises(
            TypeError, match='^the form "What\\?" can\'t be asked: its property "value" is a list, which'
        ):
            await ctx.elicit("What?", list[str])
        return "not asked"

    shown = []

    def pick(question: Any) -> Any:
        shown.append(question.message)
        return {"toppings": ["olives"]}

    for revision in ("2025-11-25", "2026-07-28"):
        async with Client(app, revision=revision, on_elicit=pick) as client:
            assert (await client.call_tool("pizza")).text == "olives"
            assert (await client.call_tool("asked")).text == "olives"
            assert (await client.call_tool("nested")).text == "not asked"
    assert len(shown) == 4
    async with Client(app, revision="2025-06-18", on_elicit=pick) as client:
        with pytest.raises(ToolError, match='"toppings" is a list of choices, which 2025-06-18 does not support'):
            await client.call_tool("pizza")
        told = (await client.call_tool("asked")).text
        assert told.startswith(
            'the form "Which toppings?" can\'t be asked: its property "toppings" is a list of choices, '
        )
        assert "which 2025-06-18 does not support" in told
    assert len(shown) == 4
