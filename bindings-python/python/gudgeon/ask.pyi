from collections.abc import Sequence
from typing import Any, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from ._schema.question import Question as Question
from .types import Message, Root, SampleOptions, SampleResult

__all__ = ["Question", "elicit", "elicit_url", "roots", "sample"]

_T = TypeVar("_T")

@overload
def elicit(message: str, type: type[_T], *, key: str | None = None, default: _T = ...) -> Question[_T]: ...
@overload
def elicit(message: str, type: TypeForm[_T], *, key: str | None = None, default: _T = ...) -> Question[_T]: ...
@overload
def elicit(message: str, schema: Any, *, key: str | None = None) -> Question[Any]: ...
def elicit_url(message: str, url: str, *, key: str | None = None) -> Question[str]: ...
def sample(
    messages: str | Sequence[str | Message], *, key: str | None = None, **options: Unpack[SampleOptions]
) -> Question[SampleResult]: ...
def roots(*, key: str | None = None) -> Question[list[Root]]: ...
