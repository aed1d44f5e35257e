"""A handler's reply that asks its client, and the keys of questions within a call."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from .._model.json import encode
from .._schema.question import Question

QUESTIONS = 8  # the kind of a reply that is questions
# The key of the running step, for the keys of its questions.
running_step: ContextVar[str | None] = ContextVar("gudgeon.step", default=None)


class QuestionReply:
    """A handler's reply that consists of questions to the client."""

    __slots__ = ("questions",)

    def __init__(self, questions: list[Question[Any]]) -> None:
        self.questions = questions

    def reply(self, call: Any) -> tuple[int, bytes]:
        """Returns the reply as the native half takes it, each question under its key."""
        return QUESTIONS, encode(
            [{"key": key_of(question, call), **question.request()} for question in self.questions], "the questions"
        )


def key_of(question: Question[Any], call: Any) -> str:
    """Returns the question's own key, or the number that it got when the call first used it."""
    if question.key is not None:
        return str(question.key)
    keys = call.questions
    key = keys.get(question)
    if key is None:
        key = keys[question] = call.next_key(question.method, running_step.get())
    return str(key)
