"""A server's questions → the user's callbacks → answers as on the wire."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from functools import partial
from typing import Any

from .._model.encoding import to_builtins
from .._model.json import encode
from ..errors import Cancelled, Declined, ProtocolError
from ..types import Accepted, ElicitRequest, RootsRequest, SampleRequest, SampleResult

Answering = Generator[Any, Any, bytes]
"""Yields what the callback returned, which may be awaitable, and receives its result."""


class Keyed:
    """A callback that also gets the question's key, where the server sends one: `answer(key, request)`."""

    def __init__(self, answer: Callable[[str | None, Any], Any]) -> None:
        self.answer = answer

    def __call__(self, request: Any = None) -> Any:
        return self.answer(None, request)


def answering(
    kind: str, callback: Callable[..., Any], params: bytes, key: str | None, server: str | None = None
) -> Answering:
    """Returns a callback's answer as on the wire; `server` is the name of the asking server in a group."""
    import msgspec

    ask: Callable[..., Any] = partial(callback.answer, key) if isinstance(callback, Keyed) else callback
    request = msgspec.json.decode(params)
    if kind == "elicit":
        asked = _asked_by(server, _read_request(ElicitRequest, request))
        return encode(form_result(asked, (yield ask(asked))), "the answer")
    if kind == "sample":
        return encode(
            sample_result((yield ask(_asked_by(server, _read_request(SampleRequest, request))))), "the answer"
        )
    from .options import roots_of

    given = yield (ask(RootsRequest()) if isinstance(callback, Keyed) else callback())
    return encode({"roots": roots_of(given)})


def _read_request(type: Any, data: Any) -> Any:
    try:
        return type.from_dict(data)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ProtocolError(-32602, f"the server's question can't be read: {error}") from error


def _asked_by(server: str | None, request: Any) -> Any:
    return request if server is None else type(request)(**{**vars(request), "server": server})


def form_result(request: ElicitRequest, answer: Any) -> dict[str, Any]:
    """Returns the result of `on_elicit` as on the wire: a mapping, an object, a bare value, or a refusal."""
    if isinstance(answer, Declined) or answer is Declined:
        return {"action": "decline"}
    if isinstance(answer, Cancelled) or answer is Cancelled:
        return {"action": "cancel"}
    if isinstance(answer, Accepted):
        answer = answer.value
    if request.mode == "url":
        # A form without properties: any other answer is consent.
        return {"action": "decline"} if answer is False else {"action": "accept"}
    content = to_builtins(answer)
    fields = request.schema.get("properties") or {}
    if isinstance(content, Mapping):
        # Forms have no null: None leaves a property out.
        content = {name: value for name, value in content.items() if value is not None}
    elif not fields and isinstance(content, bool):
        # A form without properties asks for consent only.
        return {"action": "accept", "content": {}} if content else {"action": "decline"}
    elif len(fields) == 1:
        (name,) = fields
        # A callback that returns None may have forgotten to answer: defaults must not answer for it.
        may_be_open = name not in request.schema.get("required", ()) and "default" not in fields[name]
        content = {} if content is None and may_be_open else {name: content}
    else:
        raise ProtocolError(
            -32603,
            f"the form {request.message!r} asks for {', '.join(fields) or 'nothing'}: "
            f"on_elicit returned {answer!r}, which is not a mapping",
        )
    values = {name: _as_text(value, fields.get(name)) for name, value in content.items()}
    return {"action": "accept", "content": values}


def _as_text(value: Any, field: Any) -> Any:
    """Returns the string for a number of an enum or Literal: forms choose among strings."""
    if isinstance(value, list):
        items = field.get("items") if isinstance(field, Mapping) else None
        return [_as_text(item, items) for item in value]
    if not isinstance(value, (int, float)) or not isinstance(field, Mapping):
        return value
    titled = field.get("oneOf") or field.get("anyOf") or ()
    choices = field.get("enum") or [choice.get("const") for choice in titled if isinstance(choice, Mapping)]
    return str(value) if str(value) in choices and value not in choices else value


def sample_result(answer: Any) -> dict[str, Any]:
    """Returns the result of `on_sample` as on the wire: a SampleResult, text, content, or the mapping itself."""
    if isinstance(answer, (Declined, Cancelled)) or answer is Declined or answer is Cancelled:
        raise answer
    if isinstance(answer, Mapping):
        return dict(answer)
    if isinstance(answer, SampleResult):
        result: SampleResult = answer
        return result.to_dict()
    try:
        if answer is None:
            raise TypeError("that is nothing")
        return SampleResult(answer, model="unknown").to_dict()
    except TypeError as error:
        raise ProtocolError(
            -32603, f"on_sample must return a str, content, or a SampleResult, not {type(answer).__name__}"
        ) from error
