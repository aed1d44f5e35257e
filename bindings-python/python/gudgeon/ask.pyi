"""Questions to the client, as values: to ask several at once, or to return one from a handler."""

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from .types import Message, Root, SampleOptions, SampleResult

_T = TypeVar("_T")

class Question(Generic[_T]):
    """A question that was made but not asked yet."""

    kind: Literal["elicit", "elicit_url", "sample", "roots"]
    method: str
    message: str
    params: Mapping[str, Any]
    key: str | None
    default: Any
    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The form's JSON Schema, or None."""
    def request(self) -> dict[str, Any]:
        """The question as a member of `inputRequests`."""
    def decode(self, result: Any) -> _T:
        """The answer in its type. A refusal raises Declined or Cancelled; what does not fit, ProtocolError."""

@overload
def elicit(message: str, type: type[_T], /, *, key: str | None = None, default: _T = ...) -> Question[_T]:
    """A question to the user by a form: for a type, or for what a JSON Schema says."""

@overload
def elicit(message: str, type: TypeForm[_T], /, *, key: str | None = None, default: _T = ...) -> Question[_T]: ...
@overload
def elicit(message: str, schema: Any, /, *, key: str | None = None) -> Question[Any]: ...
def elicit_url(message: str, url: str, /, *, key: str | None = None) -> Question[str]:
    """The user is sent to a URL; the answer is the elicitation's id."""

def sample(
    messages: str | Sequence[str | Message], /, *, key: str | None = None, **options: Unpack[SampleOptions]
) -> Question[SampleResult]:
    """A question to the client's model."""

def roots(*, key: str | None = None) -> Question[list[Root]]:
    """A question for the places that the client lets a server work in."""
