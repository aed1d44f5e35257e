"""Questions of a server to its client, and its notifications."""

from .components import Tool
from .results import Message
from .value import REQUIRED, Value, each, plain, read_object

# For type checkers a TypedDict; making one at run time would cost the import of typing.
SampleOptions = dict


class SampleRequest(Value):
    """A question to the client's model, the argument of `on_sample`. Spec: Client Features › Sampling.

    `server` is the name of the server that asks, where a `ClientGroup` has several.
    """

    method = "sampling/createMessage"
    _fields = {
        "messages": REQUIRED,
        "max_tokens": REQUIRED,
        "system": None,
        "temperature": None,
        "stop": (),
        "models": (),
        "cost_priority": None,
        "speed_priority": None,
        "intelligence_priority": None,
        "tools": (),
        "tool_choice": None,
        "server": None,
    }

    def to_dict(self):
        out = {"messages": plain(self.messages), "maxTokens": self.max_tokens}
        preferences = {
            "hints": [{"name": name} for name in self.models] or None,
            "costPriority": self.cost_priority,
            "speedPriority": self.speed_priority,
            "intelligencePriority": self.intelligence_priority,
        }
        rest = {
            "modelPreferences": {key: value for key, value in preferences.items() if value is not None} or None,
            "systemPrompt": self.system,
            "temperature": self.temperature,
            "stopSequences": list(self.stop) or None,
            "tools": plain(self.tools) or None,
            "toolChoice": None if self.tool_choice is None else {"mode": self.tool_choice},
        }
        out.update((key, value) for key, value in rest.items() if value is not None)
        return out

    @classmethod
    def from_dict(cls, data):
        read_object("SampleRequest", data)
        preferences = data.get("modelPreferences") or {}
        choice = data.get("toolChoice")
        return cls(
            messages=each(Message.from_dict)(data.get("messages", ())),
            max_tokens=data.get("maxTokens", 0),
            system=data.get("systemPrompt"),
            temperature=data.get("temperature"),
            stop=tuple(data.get("stopSequences") or ()),
            models=tuple(hint["name"] for hint in preferences.get("hints") or () if hint.get("name")),
            cost_priority=preferences.get("costPriority"),
            speed_priority=preferences.get("speedPriority"),
            intelligence_priority=preferences.get("intelligencePriority"),
            tools=each(Tool.from_dict)(data.get("tools") or ()),
            tool_choice=None if choice is None else choice.get("mode", "auto"),
        )


class ElicitRequest(Value):
    """A question to the user, the argument of `on_elicit`: `message`, with a `schema` or a `url` by `mode`.

    `server` is the name of the server that asks, where a `ClientGroup` has several; show it to the user.
    Spec: Client Features › Elicitation.
    """

    method = "elicitation/create"
    _fields = {"mode": REQUIRED, "message": REQUIRED, "schema": {}, "url": None, "id": None, "server": None}

    def to_dict(self):
        out = {"mode": self.mode, "message": self.message}
        if self.mode == "url":
            out["url"] = self.url
            if self.id is not None:
                out["elicitationId"] = self.id
        else:
            out["requestedSchema"] = plain(self.schema)
        return out

    @classmethod
    def from_dict(cls, data):
        read_object("ElicitRequest", data)
        return cls(
            mode=data.get("mode", "form"),
            message=data.get("message", ""),
            schema=data.get("requestedSchema") or {},
            url=data.get("url"),
            id=data.get("elicitationId"),
        )


class RootsRequest(Value):
    """A question for the client's roots. Spec: Client Features › Roots."""

    method = "roots/list"


_QUESTIONS = {kind.method: kind for kind in (SampleRequest, ElicitRequest, RootsRequest)}


def question_from_dict(data):
    """Reads one member of `inputRequests`: its method and params."""
    read_object("a question", data)
    kind = _QUESTIONS.get(data.get("method"))
    if kind is None:
        raise ValueError(f"unknown request {data.get('method')!r} of the server")
    try:
        return kind.from_dict(data.get("params") or {})
    except (TypeError, AttributeError, KeyError) as error:
        raise ValueError(f"the request {data.get('method')} of the server is invalid: {error}") from None


class InputRequired(Value):
    """Questions of a modern server: pass their answers by key to the next `call_tool_round`, with this state."""

    _fields = {"questions": REQUIRED, "state": None}

    def to_dict(self):
        out = {"resultType": "input_required"}
        if self.questions:
            asked = self.questions.items()
            out["inputRequests"] = {
                key: {"method": question.method, "params": question.to_dict()} for key, question in asked
            }
        if self.state is not None:
            out["requestState"] = self.state
        return out

    @classmethod
    def from_dict(cls, data):
        read_object("InputRequired", data)
        asked = data.get("inputRequests") or {}
        return cls(
            questions={key: question_from_dict(question) for key, question in asked.items()},
            state=data.get("requestState"),
        )


class Accepted(Value):
    """The user's answer, as `try_elicit` returns it."""

    _fields = {"value": REQUIRED}

    def __init__(self, value):
        self._put({"value": value})


class LogMessage(Value):
    """A log message of a server, the argument of `on_log`; `server` is the sender's name in a `ClientGroup`.

    Spec: Server Features › Utilities › Logging.
    """

    _fields = {"level": REQUIRED, "logger": None, "data": REQUIRED, "server": None}


class Progress(Value):
    """The progress of a call, the argument of `on_progress`. Spec: Base Protocol › Utilities › Progress."""

    _fields = {"progress": REQUIRED, "total": None, "message": None}


class ListChanged(Value):
    """A list of the server that changed: `kind` is "tools", "resources" or "prompts".

    `server` is the server's name in a `ClientGroup`.
    """

    _fields = {"kind": REQUIRED, "server": None}


class Reconnected(Value):
    """A connection that was made anew, after state on the server was lost.

    Args:
        attempt: The number of attempts that it took.
        reason: The McpError that ended the former connection.
        server: The server's name in a `ClientGroup`.
    """

    _fields = {"attempt": REQUIRED, "reason": REQUIRED, "server": None}

    def to_dict(self):
        named = {} if self.server is None else {"server": self.server}
        return {"attempt": self.attempt, "reason": str(self.reason), **named}


class Change(Value):
    """A change of a subscription: the list of this `kind` changed, or the resource `uri` was "updated".

    `server` is the name of the server that reported it in a `ClientGroup`, else None.
    """

    _fields = {"kind": REQUIRED, "uri": None, "server": None}
