"""Makes values of the server's results. An unreadable result is a ProtocolError that names the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.json import decode, encode

from .._model.article import with_article
from .._model.encoding import is_pydantic
from .._model.json import decoder
from ..errors import McpError, ProtocolError
from ..types import Prompt, PromptResult, Resource, ResourceResult, ResourceTemplate, Tool, ToolResult

_T = TypeVar("_T")
_KINDS: dict[str, Callable[[Any], Any]] = {
    "tools": Tool.from_dict,
    "resources": Resource.from_dict,
    "resourceTemplates": ResourceTemplate.from_dict,
    "prompts": Prompt.from_dict,
}


def reader(kind: str) -> Callable[[Any], Any]:
    """Returns the function that makes a value of an entry of this list."""
    return _KINDS[kind]


def read_page(core: Any, what: str, read: Callable[[], _T]) -> _T:
    """Runs a reader; its failure is a ProtocolError."""
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ProtocolError(
            -32603, f"{what}: the server's result is invalid: {error}", target=core.target_name(), phase="call"
        ) from error


def read_tool(core: Any, name: str, event: tuple[Any, ...]) -> ToolResult[Any]:
    def read() -> ToolResult[Any]:
        result: ToolResult[Any] = ToolResult.from_dict(decode(event[2]))
        if event[3] is not None:
            result.__dict__["_data"] = decode(event[3])
        return result

    return read_page(core, f"tool {name!r}", read)


def read_resource(core: Any, event: tuple[Any, ...]) -> ResourceResult:
    return read_page(core, "resources/read", lambda: ResourceResult.from_dict(decode(event[2])))


def read_prompt(core: Any, event: tuple[Any, ...]) -> PromptResult:
    return read_page(core, "prompts/get", lambda: PromptResult.from_dict(decode(event[2])))


def typed(core: Any, name: str, event: tuple[Any, ...], wanted: Any) -> ToolResult[Any]:
    """Returns the result with `data` in the type asked for. Without structured content the type decides whether the
    text is JSON or the value itself.
    """
    result = read_tool(core, name, event)
    encoded = event[3]
    try:
        if encoded is None and wanted is str:
            return result._with_data(result.text)
        read = _reader(wanted)
        try:
            return result._with_data(read(result.text.encode() if encoded is None else encoded))
        except (ValueError, TypeError):
            if encoded is not None:
                raise
            try:
                return result._with_data(read(encode(result.text)))
            except (ValueError, TypeError):
                pass
            raise
    except (ValueError, TypeError) as error:
        label = getattr(wanted, "__name__", None) or str(wanted)
        problem = " ".join(str(error).split())
        raise McpError(
            f"tool {name!r}: the result is not {with_article(label)}: {problem}",
            data=result.data,
            target=core.target_name(),
            phase="call",
        ) from error


def _reader(wanted: Any) -> Callable[[bytes], Any]:
    """Returns a function that reads JSON as this type."""
    from .._schema.type_hints import uses_pydantic

    if is_pydantic(wanted) or not uses_pydantic(wanted):
        return decoder(wanted)
    from pydantic import TypeAdapter

    adapter: Any = TypeAdapter(wanted)
    return lambda encoded: adapter.validate_json(encoded)
