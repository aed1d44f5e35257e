"""Derives a tool's output schema from its return annotation or `output=`, and whether its results are content."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

from .._schema.json_schema import Profile, own_schema, schema_of
from .._schema.question import Question
from .._schema.type_hints import SchemaError, parts, union_members, unwrap
from ..types import Content, ToolResult
from .parameter import MISSING
from .questions import check_questions
from .signature import Signature


class Output:
    """The output schema of a tool, and whether its results are content."""

    __slots__ = ("is_content", "schema")

    def __init__(self, schema: dict[str, Any] | None = None, is_content: bool = False) -> None:
        self.schema = schema
        self.is_content = is_content


def output_of(signature: Signature, output: Any, given: bool, profile: Profile) -> Output:
    """Derives the output schema from `output`, a type or a JSON Schema, if it was `given`, else from the annotation."""
    if given and isinstance(output, Mapping):
        return Output(own_schema(output, f"output= of {signature.place}", profile))
    if given:
        check_questions(output, f"output= of {signature.place}")
    annotation = _without_questions(output if given else signature.returns)
    if annotation is MISSING or annotation is None or unwrap(annotation) in (Any, type(None), typing.NoReturn):
        return Output()
    if any(_is(part, ToolResult) for part in parts(annotation)):
        annotation = _named_by_results(annotation)
        if annotation is None:
            return Output()
    if any(_is(part, Content) for part in parts(annotation)):
        return Output(is_content=True)
    if not given and _may_hold_content(annotation):
        return Output()
    try:
        return Output(schema_of(annotation, profile=profile, output=True))
    except SchemaError as error:
        what = "output=" if given else "the return annotation"
        raise TypeError(f"{what} of {signature.place}: {error}; or return Any for a result without a schema") from None


def _named_by_results(annotation: Any) -> Any:
    """Returns `Book` for `ToolResult[Book]`; None unless every member of the annotation names its data."""
    named: list[Any] = []
    for member in map(unwrap, union_members(annotation)):
        data = typing.get_args(member) if _is(member, ToolResult) else ()
        if not data or isinstance(data[0], typing.TypeVar) or _names_results(data[0]):
            return None
        if unwrap(data[0]) in (Any, None, type(None)):
            return None
        named.append(data[0])
    return typing.Union[tuple(named)]  # noqa: UP007


def _may_hold_content(annotation: Any) -> bool:
    """Returns whether it is `list`, `tuple` or `Sequence` of anything: only the values say whether they are content."""
    inner = unwrap(annotation)
    base, items = typing.get_origin(inner) or inner, typing.get_args(inner)
    if not isinstance(base, type) or not issubclass(base, Sequence) or issubclass(base, (str, bytes, bytearray)):
        return False
    return base in (list, tuple, Sequence) and all(unwrap(item) in (Any, object, ...) for item in items)


def _names_results(annotation: Any) -> bool:
    return any(_is(part, (ToolResult, Content)) for part in parts(annotation))


def _is(part: Any, cls: type | tuple[type, ...]) -> bool:
    base = typing.get_origin(part) or part
    return isinstance(base, type) and issubclass(base, cls)


def _without_questions(annotation: Any) -> Any:
    """Returns `str` for `str | Question[bool]`; for questions only, there is no schema."""
    members = union_members(annotation)
    kept = [member for member in members if not any(_is(part, Question) for part in parts(member))]
    if len(kept) == len(members):
        return annotation
    return typing.Union[tuple(kept)] if kept else None  # noqa: UP007
