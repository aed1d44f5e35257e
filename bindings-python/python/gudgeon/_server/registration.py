"""A registered handler, and the conversion of its replies for middleware."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from .._native import middleware_result
from .._plan import replies as _replies
from .._plan.plan import Plan
from .._plan.question_reply import QuestionReply
from ..types import Completion, PromptResult, ResourceResult, ToolResult
from .middleware import applies, around, method_of


class PublishedComponent:
    """A registration in one server that offers it: its own, or one that it is mounted into."""

    __slots__ = ("handle", "is_wrapped", "path", "registration")

    def __init__(self, registration: Registration, path: tuple[tuple[Any, Any], ...], handle: Any) -> None:
        self.registration = registration
        #: The servers from the one that offers it to its own, each with its key there.
        self.path = path
        self.handle = handle
        self.is_wrapped = False
        self.wrap()

    def wrap(self) -> None:
        """Wraps the handler in middleware, once one of these servers has some for it."""
        wanted = (applies(on, self.registration.method) for server, _ in self.path for _, on in server._middleware)
        if not self.is_wrapped and any(wanted):
            self.is_wrapped = True
            wrapper: Any = around(self)
            wrapper.subject = self.registration.subject(self.path[0][1])
            wrapper.around_def = not self.registration.is_async
            self.handle.wrap(wrapper)


class Registration:
    """A handler with its kind and key."""

    __slots__ = ("invoke", "is_async", "key", "kind", "options", "plan", "server")

    def __init__(self, server: Any, kind: str, key: Any, plan: Plan, options: dict[str, Any]) -> None:
        self.server = server
        self.kind = kind
        self.key = key
        self.plan = plan
        self.options = options
        self.invoke: Callable[[Any, Any], Any] = plan.invoke
        self.is_async = plan.is_async

    @property
    def method(self) -> str:
        return method_of(self.kind, str(self.key))

    def subject(self, key: Any) -> tuple[str, str | None]:
        """Returns the method and the name of the tool or prompt, for traces and logs."""
        return self.method, key if self.kind in ("tools", "prompts") else None

    def invoke_as(self, key: Any) -> Callable[[Any, Any], Any]:
        """Returns the handler for a server that offers it under this key."""
        invoke: Any = self.invoke if key == self.key else partial(self.invoke)
        invoke.subject = self.subject(key)
        return invoke  # type: ignore[no-any-return]

    def result(self, reply: Any) -> Any:
        """Converts a handler's reply to the value that middleware sees."""
        from msgspec.json import decode

        if isinstance(reply, QuestionReply):
            return reply.questions[0] if len(reply.questions) == 1 else reply.questions
        if isinstance(reply, str) and self.kind == "tools":
            return ToolResult(reply, structured_content=None if self.plan.output_schema is None else reply)
        if self.kind in _RESULTS:
            result = decode(middleware_result(self.kind, self.options.get("mime_type"), reply))
            return _RESULTS[self.kind].from_dict(result)
        if isinstance(reply, tuple):
            return Completion.from_dict(decode(reply[1])["completion"])
        return decode(reply) if isinstance(reply, bytes) else reply

    def reply(self, result: Any) -> Any:
        """Converts the value that middleware returned to a reply."""
        method = "" if self.kind == "methods" else self.method
        return _replies.reply_for(method, self.plan.place, has_schema=self.plan.output_schema is not None)(result)


_RESULTS: dict[str, Any] = {
    "tools": ToolResult,
    "resources": ResourceResult,
    "templates": ResourceResult,
    "prompts": PromptResult,
}
