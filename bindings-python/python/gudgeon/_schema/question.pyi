from collections.abc import Mapping
from typing import Any, Generic, Literal

from typing_extensions import TypeVar

from ..errors import ProtocolError

_T = TypeVar("_T")

UNSET: Any

class InvalidAnswer(ProtocolError):
    problem: str
    def __init__(self, message: str, error: Exception) -> None: ...

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

def problem_of(error: Exception) -> str: ...
