"""One handler that a server was given, and what is made of its replies for middleware."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import _replies
from ._asking import QuestionReply
from ._chain import around, method_of
from ._plan import Plan


class Registration:
    """A handler under its kind and key; servers that mount its server hold it too."""

    __slots__ = ("handles", "invoke", "is_async", "key", "kind", "options", "plan", "server", "wrapped")

    def __init__(self, server: Any, kind: str, key: Any, plan: Plan, options: dict[str, Any]) -> None:
        self.server = server
        self.kind = kind
        self.key = key
        self.plan = plan
        self.options = options
        self.invoke: Callable[[Any, Any], Any] = plan.invoke
        self.is_async = plan.is_async
        self.handles: list[Any] = []
        self.wrapped: Callable[[Any, Any], Any] | None = None

    @property
    def method(self) -> str:
        return method_of(self.kind, str(self.key))

    def wrap(self) -> None:
        """From now on middleware runs around the handler."""
        if self.wrapped is None:
            self.wrapped = around(self)
        for handle in self.handles:
            handle.wrap(self.wrapped)

    def result(self, reply: Any) -> Any:
        """A handler's reply as the value that middleware sees."""
        from msgspec.json import decode

        from .types import PromptResult, ResourceResult, ToolResult, user

        if isinstance(reply, QuestionReply):
            return reply
        code, said = reply if isinstance(reply, tuple) else (None, reply)
        if self.kind == "tools":
            if code == _replies.RESULT:
                return ToolResult.from_dict(decode(said))
            if code == _replies.PARTS:
                return ToolResult.from_dict({"content": [_block(item) for item in decode(said)]})
            if isinstance(said, bytes):
                return ToolResult(said.decode(), structured_content=decode(said))
            has_schema = self.plan.output_schema is not None
            return ToolResult(() if said is None else said, structured_content=said if has_schema else None)
        if self.kind in ("resources", "templates"):
            mime_type = self.options.get("mime_type")
            if code == _replies.RESULT:
                return ResourceResult.from_dict(decode(said))
            if code == _replies.PARTS:
                return ResourceResult.from_dict({"contents": decode(said)})
            if code is None and isinstance(said, bytes):
                return ResourceResult(said.decode(), mime_type=mime_type or "application/json")
            return ResourceResult("" if said is None else said, mime_type=mime_type)
        if self.kind == "prompts":
            if code == _replies.RESULT:
                return PromptResult.from_dict(decode(said))
            if code == _replies.PARTS:
                return PromptResult.from_dict({"messages": decode(said)})
            return PromptResult([user(said)])
        return decode(said) if isinstance(said, bytes) else said

    def reply(self, result: Any) -> Any:
        """What middleware made of it, as a reply."""
        place = self.plan.place
        if isinstance(result, QuestionReply):
            return result
        if self.kind == "tools":
            return _replies.tool_reply(place, has_schema=self.plan.output_schema is not None, is_content=False)(result)
        if self.kind in ("resources", "templates"):
            return _replies.resource_reply(place)(result)
        if self.kind == "prompts":
            return _replies.prompt_reply(place)(result)
        if self.kind == "completions":
            return _replies.completion_reply(place)(result)
        return _replies.method_reply(place)(result)


def _block(item: Any) -> Any:
    return {"type": "text", "text": item} if isinstance(item, str) else item
