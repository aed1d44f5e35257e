from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal

from typing_extensions import TypedDict, TypeVar

from .components import Tool
from .results import Message
from .value import Value

_T = TypeVar("_T")

class SampleOptions(TypedDict, total=False):
    """The options of `sample`."""

    max_tokens: int
    system: str
    temperature: float
    stop: Sequence[str]
    models: str | Sequence[str]  # hints, best first
    cost_priority: float
    speed_priority: float
    intelligence_priority: float
    tools: Sequence[Any]
    tool_choice: Literal["auto", "required", "none"]

class SampleRequest(Value):
    messages: Sequence[Message]
    max_tokens: int
    system: str | None
    temperature: float | None
    stop: Sequence[str]
    models: Sequence[str]
    cost_priority: float | None
    speed_priority: float | None
    intelligence_priority: float | None
    tools: Sequence[Tool]
    tool_choice: Literal["auto", "required", "none"] | None
    server: str | None
    def __init__(
        self,
        *,
        messages: Sequence[Message],
        max_tokens: int,
        system: str | None = None,
        temperature: float | None = None,
        stop: Sequence[str] = (),
        models: Sequence[str] = (),
        cost_priority: float | None = None,
        speed_priority: float | None = None,
        intelligence_priority: float | None = None,
        tools: Sequence[Tool] = (),
        tool_choice: Literal["auto", "required", "none"] | None = None,
        server: str | None = None,
    ) -> None: ...

class ElicitRequest(Value):
    mode: Literal["form", "url"]
    id: str | None
    message: str
    schema: Mapping[str, Any]
    url: str | None
    server: str | None
    def __init__(
        self,
        *,
        mode: Literal["form", "url"],
        message: str,
        schema: Mapping[str, Any] = ...,
        url: str | None = None,
        id: str | None = None,
        server: str | None = None,
    ) -> None: ...

class Accepted(Value, Generic[_T]):
    value: _T
    def __init__(self, value: _T) -> None: ...

class LogMessage(Value):
    level: str
    logger: str | None
    data: Any
    server: str | None
    def __init__(self, *, level: str, data: Any, logger: str | None = None, server: str | None = None) -> None: ...

class Progress(Value):
    progress: float
    total: float | None
    message: str | None
    def __init__(self, *, progress: float, total: float | None = None, message: str | None = None) -> None: ...

class ListChanged(Value):
    kind: Literal["tools", "resources", "prompts"]
    server: str | None
    def __init__(self, *, kind: Literal["tools", "resources", "prompts"], server: str | None = None) -> None: ...

class Reconnected(Value):
    attempt: int
    reason: Exception
    server: str | None
    def __init__(self, *, attempt: int, reason: Exception, server: str | None = None) -> None: ...

class Change(Value):
    kind: Literal["tools", "resources", "prompts", "updated"]
    uri: str | None
    server: str | None
    def __init__(
        self,
        *,
        kind: Literal["tools", "resources", "prompts", "updated"],
        uri: str | None = None,
        server: str | None = None,
    ) -> None: ...

class RootsRequest(Value):
    def __init__(self) -> None: ...

class InputRequired(Value):
    questions: Mapping[str, ElicitRequest | SampleRequest | RootsRequest]
    state: str | None
    def __init__(
        self,
        *,
        questions: Mapping[str, ElicitRequest | SampleRequest | RootsRequest],
        state: str | None = None,
    ) -> None: ...
