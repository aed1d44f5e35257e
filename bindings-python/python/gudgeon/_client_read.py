"""Results as the server gave them → values. What can't be read is a ProtocolError that names the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from .errors import McpError, ProtocolError
from .types import Prompt, PromptResult, Resource, ResourceResult, ResourceTemplate, Tool, ToolResult

_T = TypeVar("_T")
_KINDS: dict[str, Callable[[Any], Any]] = {
    "tools": Tool.from_dict,
    "resources": Resource.from_dict,
    "resourceTemplates": ResourceTemplate.from_dict,
    "prompts": Prompt.from_dict,
}


def reader(kind: str) -> Callable[[Any], Any]:
    """What makes a value of an entry of this list."""
    return _KINDS[kind]


def read_page(core: Any, what: str, read: Callable[[], _T]) -> _T:
    """Runs a reader over what the server said."""
    try:
        return read()
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProtocolError(
            -32603, f"{what}: the server's answer can't be read: {error}", target=core.target_name(), phase="call"
        ) from error


def read_tool(core: Any, name: str, letter: tuple[Any, ...]) -> ToolResult[Any]:
    from msgspec.json import decode

    def read() -> ToolResult[Any]:
        result = ToolResult[Any].from_dict(decode(letter[2]))
        return result if letter[3] is None else result._with_data(decode(letter[3]))

    return read_page(core, f"tool {name!r}", read)


def read_resource(core: Any, letter: tuple[Any, ...]) -> ResourceResult:
    from msgspec.json import decode

    return read_page(core, "resources/read", lambda: ResourceResult.from_dict(decode(letter[2])))


def read_prompt(core: Any, letter: tuple[Any, ...]) -> PromptResult:
    from msgspec.json import decode

    return read_page(core, "prompts/get", lambda: PromptResult.from_dict(decode(letter[2])))


def typed(core: Any, name: str, result: ToolResult[Any], wanted: Any) -> ToolResult[Any]:
    """The result with `data` in the type asked for. A server older than structured content says JSON in its text."""
    from msgspec.json import decode

    data = result.data
    has_structure = "_data" in result.__dict__
    if not has_structure and wanted is not str:
        try:
            data = decode(result.text)
        except ValueError:
            pass
    try:
        return result._with_data(_converter(wanted)(data))
    except (ValueError, TypeError) as error:
        label = getattr(wanted, "__name__", None) or str(wanted)
        raise McpError(
            f"what tool {name!r} answered is no {label}: {error}", data=data, target=core.target_name(), phase="call"
        ) from error


def _converter(wanted: Any) -> Callable[[Any], Any]:
    from ._schema import uses_pydantic

    if uses_pydantic(wanted):
        from pydantic import TypeAdapter

        adapter: Any = TypeAdapter(wanted)
        return lambda data: adapter.validate_python(data)
    from ._json import convert

    return lambda data: convert(data, wanted)
