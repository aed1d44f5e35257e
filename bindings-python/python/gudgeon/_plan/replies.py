"""Converts results of handlers to replies: None, a str, JSON bytes, or a tuple of kind and bytes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from os import PathLike
from typing import Any

import msgspec

from .._model.article import with_article
from .._model.encoding import is_pydantic
from .._model.http import HttpResponse
from .._model.json import check_numbers, encode, encode_exact
from .._model.results import messages_of, resource_contents
from .._model.value import Value
from .._schema.question import Question
from ..types import (
    Completion,
    Content,
    Message,
    PromptResult,
    ResourceContents,
    ResourceResult,
    ToolResult,
)
from .question_reply import QuestionReply

_EXACT = frozenset((int, bool))
_JSON = frozenset((float, dict))
_RESULT = "the result"
BLOB, PARTS, RESULT = 1, 2, 3


Reply = None | str | bytes | tuple[int, bytes] | QuestionReply


def json_reply(value: Any) -> bytes:
    """Encodes a value as JSON, pydantic models by their own serializer."""
    if isinstance(value, Value):
        return encode(value.to_dict(), _RESULT)
    if is_pydantic(type(value)):
        from .._model.pydantic_json import to_json

        encoded = to_json(value)
        if b"null" in encoded or b"NaN" in encoded or b"Infinity" in encoded:
            check_numbers(value, _RESULT)
        return encoded
    return encode(value, _RESULT)


def _special(value: Any, place: str) -> QuestionReply | None:
    """Returns the reply for questions, else None; refuses values that are not a result."""
    if isinstance(value, Question):
        return QuestionReply([value])
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, Question) for item in value):
        return QuestionReply(list(value))
    if hasattr(value, "__await__"):
        close = getattr(value, "close", None)
        if close is not None:
            close()  # or Python warns as well that it was never awaited
        raise TypeError(f"{place} returned something to await: write async def and await it there")
    return None


def _text(value: Any) -> str | None:
    """Returns the str of a subclass of str or of an enum of strings."""
    if isinstance(value, Enum):
        value = value.value
    return str.__str__(value) if isinstance(value, str) else None


def _plain(encoded: bytes) -> bytes | str:
    """Returns a JSON string as text: a Decimal or a date is read without quotes."""
    return msgspec.json.decode(encoded, type=str) if encoded.startswith(b'"') else encoded


def tool_reply(place: str, *, has_schema: bool, is_content: bool) -> Callable[[Any], Reply]:
    """Returns the conversion of a tool's results; `is_content`: its return annotation names content."""

    def reply(value: Any) -> Reply:
        if value.__class__ in _EXACT:
            return encode_exact(value)
        if value.__class__ in _JSON:
            return encode(value, _RESULT)
        if value is None:
            return b"null" if has_schema else None
        if isinstance(value, ToolResult):
            whole = value.to_dict()
            if not value.content and isinstance(whole.get("structuredContent"), str):
                whole["content"] = [{"type": "text", "text": whole["structuredContent"]}]
            return RESULT, encode(whole, _RESULT)
        if isinstance(value, Content):
            return PARTS, encode([value.to_dict()], _RESULT)
        text = _text(value)
        if text is not None:
            return text
        if is_content and isinstance(value, (bytes, bytearray, memoryview, PathLike)):
            raise TypeError(
                f"{place} returned {type(value).__name__}, but its return annotation names content: "
                "write return Image(data, format='png'), or Audio or File"
            )
        if isinstance(value, (list, tuple)) and (is_content or any(isinstance(item, Content) for item in value)):
            return PARTS, encode([_block(item, place) for item in value], _RESULT)
        return _special(value, place) or _plain(json_reply(value))

    return reply


def _block(item: Any, place: str) -> Any:
    if isinstance(item, Content):
        return item.to_dict()
    text = _text(item)
    if text is None:
        raise TypeError(
            f"{place} returned a list of content with {with_article(type(item).__qualname__)} in it: "
            "there, strings and content (Text, Image, …) are allowed; JSON belongs in ToolResult(structured_content=…)"
        )
    return text


def resource_reply(place: str, *, has_null: bool = False) -> Callable[[Any], Reply]:
    """Returns the conversion of a resource's results.

    Args:
        has_null: Whether its return annotation is `… | None`, so that None is the JSON value null.
    """

    def reply(value: Any) -> Reply:
        if value is None:
            if has_null:
                return b"null"
            raise TypeError(
                f"{place} returned None: a resource returns str, bytes, JSON or a ResourceResult; "
                "return '' for an empty one, or raise ResourceNotFound(uri) where there is none"
            )
        if isinstance(value, (bytes, bytearray, memoryview)):
            return BLOB, bytes(value)
        if isinstance(value, ResourceResult):
            return RESULT, encode(value.to_dict(), _RESULT)
        text = _text(value)
        if text is not None:
            return text
        if isinstance(value, (ResourceContents, Content)):
            return PARTS, encode([resource_contents(value).to_dict()], _RESULT)
        if isinstance(value, (list, tuple)) and any(isinstance(item, (ResourceContents, Content)) for item in value):
            return PARTS, encode([resource_contents(item).to_dict() for item in value], _RESULT)
        special = _special(value, place)
        if special is not None:
            return special
        return _plain(json_reply(value))

    return reply


def prompt_reply(place: str) -> Callable[[Any], Reply]:
    """Returns the conversion of a prompt's results."""

    def reply(value: Any) -> Reply:
        if value is None:
            return PARTS, b"[]"
        if isinstance(value, PromptResult):
            return RESULT, encode(value.to_dict(), _RESULT)
        text = _text(value)
        if text is not None:
            return text
        if isinstance(value, (Message, Content)):
            value = [value]
        if isinstance(value, (list, tuple)) and all(isinstance(item, (str, Message, Content)) for item in value):
            return PARTS, encode([message.to_dict() for message in messages_of(value)], _RESULT)
        special = _special(value, place)
        if special is not None:
            return special
        raise TypeError(
            f"{place} returned {with_article(type(value).__qualname__)}: a prompt returns a str, a Message "
            "(user(…), assistant(…)), a list of these, or a PromptResult"
        )

    return reply


def completion_reply(place: str) -> Callable[[Any], Reply]:
    """Returns the conversion of a completion's results."""

    def reply(value: Any) -> Reply:
        if value is None:
            return b"[]"
        if isinstance(value, Completion):
            return RESULT, encode({"completion": value.to_dict()})
        if isinstance(value, (str, bytes, dict)) or not hasattr(value, "__iter__"):
            special = _special(value, place)
            if special is not None:
                return special
            raise TypeError(
                f"{place} returned {with_article(type(value).__qualname__)}: a completion returns a list of str, or a "
                "Completion"
            )
        return encode([text if (text := _text(item)) is not None else str(item) for item in value])

    return reply


def method_reply(place: str) -> Callable[[Any], Reply]:
    """Returns the conversion of a method's results."""

    def reply(value: Any) -> Reply:
        return None if value is None else _special(value, place) or json_reply(value)

    return reply


def notification_reply(place: str) -> Callable[[Any], Reply]:
    """Returns the conversion of a notification's result, which is dropped: notifications have no answer."""
    return lambda value: None


_REPLIES = {"resources/read": resource_reply, "prompts/get": prompt_reply, "completion/complete": completion_reply}


def reply_for(method: str, place: str, *, has_schema: bool = False) -> Callable[[Any], Reply]:
    """Returns the conversion of what middleware returns for a method."""
    if method == "tools/call":
        return tool_reply(place, has_schema=has_schema, is_content=False)
    return _REPLIES.get(method, method_reply)(place)


def route_reply(place: str) -> Callable[[Any], Reply]:
    """Returns the conversion of the results of a route's function."""

    def reply(value: Any) -> Reply:
        if value is None:
            return None
        if isinstance(value, HttpResponse):
            return RESULT, encode(_response(value, place), _RESULT)
        if isinstance(value, (bytes, bytearray, memoryview)):
            return BLOB, bytes(value)
        text = _text(value)
        if text is not None:
            return text
        if _special(value, place) is not None:
            raise TypeError(f"{place} returned a question: a route has no client that could be asked")
        return json_reply(value)

    return reply


def _response(response: HttpResponse, place: str) -> dict[str, Any]:
    """Returns a response as the core reads it."""
    written: dict[str, Any] = {"status": response.status, "headers": response.headers}
    body, media_type = response.body, response.content_type
    if not response.has_body:
        pass
    elif isinstance(body, (bytes, bytearray, memoryview)):
        written["blob"] = bytes(body)
    elif (text := _text(body)) is not None:
        written["body"] = text
    else:
        _special(body, place)
        written["body"] = json_reply(body).decode()
        media_type = media_type or "application/json"
    if media_type is not None:
        others = [pair for pair in response.headers if pair[0].lower() != "content-type"]
        written["headers"] = [("content-type", media_type), *others]
    return written
