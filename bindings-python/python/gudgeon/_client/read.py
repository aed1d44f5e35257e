"""Makes values of what a server sent. An unreadable result is a ProtocolError that names the request."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Any, TypeVar

from msgspec.json import decode, encode

from .._model.article import with_article
from .._model.content import content_from_dict
from .._model.encoding import is_pydantic
from .._model.json import decoder
from ..errors import McpError, ProtocolError
from ..types import (
    Message,
    Prompt,
    PromptResult,
    Resource,
    ResourceContents,
    ResourceResult,
    ResourceTemplate,
    Tool,
    ToolResult,
)

# The entries of a list, or parts of a large result, that are read before other tasks of an event loop run.
SLICE = 500
# The bytes of a result from which on it may have many parts.
LARGE = 64 * 1024

_T = TypeVar("_T")
_KINDS: dict[str, Callable[[Any], Any]] = {
    "tools": Tool.from_dict,
    "resources": Resource.from_dict,
    "resourceTemplates": ResourceTemplate.from_dict,
    "prompts": Prompt.from_dict,
}


# Raised by msgspec, for JSON that it can't represent in Python, and by `from_dict`.
UNREADABLE = (ValueError, TypeError, KeyError, AttributeError, RecursionError)


def read_json(core: Any, what: str, encoded: bytes, make: Callable[[Any], _T] | None = None) -> _T:
    """Returns what a server sent, as `make` returns it for the decoded JSON; without `make`, the decoded JSON.

    Raises ProtocolError if either fails; `what` begins its message.
    """
    try:
        received = decode(encoded)
        return received if make is None else make(received)
    except UNREADABLE as error:
        raise _invalid(core, what, error) from error


def _invalid(core: Any, what: str, error: Exception) -> ProtocolError:
    return ProtocolError(-32603, f"{what} is invalid: {error}", target=core.target_name(), phase="call")


def read_result(core: Any, what: str, encoded: bytes, make: Callable[[Any], _T] | None = None) -> _T:
    """Returns the result of a request as `read_json` does; `what` names the request."""
    return read_json(core, f"{what}: the server's result", encoded, make)


def read_list(core: Any, kind: str, encoded: bytes) -> Iterator[list[Any]]:
    """Yields the entries of a list, at most `SLICE` at a time."""
    return read_entries(core, kind, read_result(core, kind, encoded))


def read_entries(core: Any, kind: str, items: list[Any]) -> Iterator[list[Any]]:
    """Yields the entries of a list whose JSON is decoded, at most `SLICE` at a time."""
    read = _KINDS[kind]
    for at in range(0, len(items), SLICE):
        try:
            part = [read(item) for item in items[at : at + SLICE]]
        except UNREADABLE as error:
            raise _invalid(core, f"{kind}: the server's result", error) from error
        yield part


def read_tool(core: Any, name: str, event: tuple[Any, ...]) -> ToolResult[Any]:
    return _with_data(read_result(core, f"tool {name!r}", event[2], ToolResult.from_dict), event)


def read_large_tool(core: Any, name: str, event: tuple[Any, ...]) -> Generator[None, None, ToolResult[Any]]:
    """Returns the result as `read_tool` does; yields where other tasks may run."""
    result = yield from _read_large(core, f"tool {name!r}", event[2], ToolResult, "content", content_from_dict)
    return _with_data(result, event)


def _with_data(result: ToolResult[Any], event: tuple[Any, ...]) -> ToolResult[Any]:
    place = event[3]
    if isinstance(place, bytes):
        return result._with_data(decode(place))
    if place is not None:
        data = result.structured_content
        result.__dict__["_data"] = data["result"] if place[2] else data
    return result


def _data_json(encoded: bytes, place: tuple[int, int, bool] | bytes | None) -> bytes | None:
    """Returns the JSON of a tool's data; None if that is the text as it is. `place` is its place in the result, or the
    JSON in the text.
    """
    return encoded[place[0] : place[1]] if isinstance(place, tuple) else place


def read_resource(core: Any, event: tuple[Any, ...]) -> ResourceResult:
    return read_result(core, "resources/read", event[2], ResourceResult.from_dict)


def read_large_resource(core: Any, event: tuple[Any, ...]) -> Generator[None, None, ResourceResult]:
    """Returns the result as `read_resource` does; yields where other tasks may run."""
    kind: Any = ResourceContents
    result: ResourceResult = yield from _read_large(
        core, "resources/read", event[2], ResourceResult, "contents", kind._received
    )
    return result


def read_prompt(core: Any, event: tuple[Any, ...]) -> PromptResult:
    return read_result(core, "prompts/get", event[2], PromptResult.from_dict)


def read_large_prompt(core: Any, event: tuple[Any, ...]) -> Generator[None, None, PromptResult]:
    """Returns the result as `read_prompt` does; yields where other tasks may run."""
    result: PromptResult = yield from _read_large(
        core, "prompts/get", event[2], PromptResult, "messages", Message.from_dict
    )
    return result


def _read_large(
    core: Any, request: str, encoded: bytes, result_type: Any, member: str, read: Callable[[Any], Any]
) -> Generator[None, None, Any]:
    """Returns the result whose parts are in `member`; yields between every `SLICE` of them."""
    received: Any = read_result(core, request, encoded)
    parts: list[Any] = []
    try:
        items = received.get(member)
        if not isinstance(items, list):
            return result_type.from_dict(received)
        for at in range(0, len(items), SLICE):
            if at:
                yield
            parts += [read(item) for item in items[at : at + SLICE]]
        result = result_type.from_dict({**received, member: []})
    except UNREADABLE as error:
        raise _invalid(core, f"{request}: the server's result", error) from error
    result.__dict__[member] = tuple(parts)
    return result


def typed(core: Any, name: str, event: tuple[Any, ...], result: ToolResult[Any], wanted: Any) -> ToolResult[Any]:
    """Returns the result with `data` in the type asked for. Data that is text is read as a string, or else as JSON."""
    encoded = _data_json(event[2], event[3])
    try:
        read = _reader(wanted)
        if encoded is not None:
            return result._with_data(read(encoded))
        try:
            return result._with_data(read(encode(result.text)))
        except (ValueError, TypeError) as misfit:
            if not _is_json(result.text):
                raise misfit from None
            return result._with_data(read(result.text.encode()))
    except (ValueError, TypeError, RecursionError) as error:
        label = getattr(wanted, "__name__", None) or str(wanted)
        problem = " ".join(str(error).split())
        raise McpError(
            f"tool {name!r}: the result is not {with_article(label)}: {problem}",
            data=result.data,
            target=core.target_name(),
            phase="call",
        ) from error


def _is_json(text: str) -> bool:
    try:
        decode(text)
    except (ValueError, RecursionError):
        return False
    return True


def _reader(wanted: Any) -> Callable[[bytes], Any]:
    """Returns a function that reads JSON as this type."""
    from .._schema.type_hints import uses_pydantic

    if is_pydantic(wanted) or not uses_pydantic(wanted):
        return decoder(wanted)
    from .._model.pydantic_json import adapter

    validate: Callable[[bytes], Any] = adapter(wanted).validate_json
    return validate
