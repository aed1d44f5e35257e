"""A handler's reply that asks its client, and the keys of questions within a call."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .._model.json import encode
from .._schema.question import Question

QUESTIONS = 8  # the kind of a reply that is questions
# The key of the running step. Its questions are numbered apart, because a replay may skip the step.
running_step: ContextVar[str | None] = ContextVar("gudgeon.step", default=None)


class QuestionReply:
    """A handler's reply that consists of questions to the client."""

    __slots__ = ("questions",)

    def __init__(self, questions: list[Question[Any]]) -> None:
        self.questions = questions

    def reply(self, call: Any) -> tuple[int, bytes]:
        """Returns the reply as the native half takes it, each question under its key."""
        return QUESTIONS, encode([{"key": key_of(it, call), **it.request()} for it in self.questions], "the questions")


def key_of(question: Question[Any], call: Any) -> str:
    """Returns the question's own key, or the number that it got when the call first used it."""
    if question.key is not None:
        return str(question.key)
    keys = call.questions
    key = keys.get(question)
    if key is None:
        kind, step = question.kind.partition("_")[0], running_step.get()
        if step is not None:
            kind = f"{step}/{kind}"
        keys[kind] = keys.get(kind, 0) + 1
        key = keys[question] = f"{kind}-{keys[kind]}"
    return str(key)
