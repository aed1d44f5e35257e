"""Checks the questions that a handler's annotations name, before any call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args, get_origin

from .._schema.question import Question
from .._schema.type_hints import parts, union_members, unwrap
from ..types import Root, SampleResult


def check_questions(annotation: Any, where: str) -> None:
    """Refuses an annotation with a `Question[T]` if no form can ask for T. `where` begins the error."""
    for part in parts(annotation):
        if get_origin(part) is Question:
            for wanted in union_members(get_args(part)[0]):
                if _is_form(wanted):
                    _check(wanted, where)


def names_questions(annotation: Any) -> bool:
    """Returns whether the annotation names a `Question`."""
    return any((get_origin(part) or part) is Question for part in parts(annotation))


def _is_form(wanted: Any) -> bool:
    """Returns whether T is asked by a form: not the answer of another kind of question, nor a dict or Any."""
    inner = unwrap(wanted)
    kind = get_origin(inner) or inner
    if isinstance(inner, TypeVar) or inner in (Any, object, None, type(None)):
        return False
    if kind is list and get_args(inner) == (Root,):
        return False
    return not isinstance(kind, type) or not (kind is SampleResult or kind is dict or kind is Mapping)


def _check(wanted: Any, where: str) -> None:
    from .._schema.forms import askable, label

    try:
        askable(label(wanted), wanted)
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from None
