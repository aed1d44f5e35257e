from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from .types import Message, Root, SampleOptions, SampleResult

_T = TypeVar("_T")

class Question(Generic[_T]):
    kind: Literal["elicit", "elicit_url", "sample", "roots"]
    method: str
    message: str
    params: Mapping[str, Any]
    key: str | None
    default: Any
    @property
    def schema(self) -> Mapping[str, Any] | None: ...
    def request(self) -> dict[str, Any]: ...
    def decode(self, result: Any) -> _T: ...

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
