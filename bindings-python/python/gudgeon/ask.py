"""Questions to the client as values, to ask several at once, or to return one from a handler."""

from ._model.results import messages_of
from ._schema.question import UNSET, Question
from .types import Root, SampleRequest, SampleResult, Tool

__all__ = ["Question", "elicit", "elicit_url", "roots", "sample"]


def elicit(message, type=..., *, key=None, default=UNSET, schema=..., **unknown):
    """Returns a question to the user by a form, for a type or a JSON Schema.

    Args:
        message: The text that the user reads.
        type: A plain type (asked as the one property `value`), a model, or a JSON Schema with flat properties.
        key: The question's name, by which its answer comes back. Default: "elicit-<n>" in the order asked.
        default: The initial value of the form.
        schema: A JSON Schema, in place of `type`.

    Raises:
        TypeError: There is no message, no type, or an unknown option; or no revision has a form for such a type. A list
            of choices is there from 2025-11-25 on; before, it fails when it is asked.

    Spec: Client Features › Elicitation.

    >>> question = elicit("Delete it?", bool)
    >>> question.schema["properties"]["value"]["type"]
    'boolean'
    >>> question.decode({"action": "accept", "content": {"value": True}})
    True
    >>> try:
    ...     elicit("How many?", int | str)
    ... except TypeError as error:
    ...     print(str(error).partition(", and")[0])
    the form "How many?" can't be asked: its property "value" is of several types
    """
    from ._schema.forms import askable

    _check_message(message)
    if unknown:
        from ._model.unknown import unknown_name

        known = ("message", "type", "key", "default", "schema")
        raise unknown_name("elicit()", "option", next(iter(unknown)), known, {"response_type": "type"})
    if (type is ...) == (schema is ...):
        raise TypeError("elicit() needs the type of the answer: write elicit('Delete it?', bool), or schema={…}")
    if type is ...:
        type = schema
    asked = askable(message, type) if default is UNSET else askable(message, type, default)
    params = {"mode": "form", "message": message, "requestedSchema": asked.schema}
    read = lambda result: asked.decode(result.get("content") or {})  # noqa: E731
    return Question("elicit", "elicitation/create", message, params, read, key, default)


def elicit_url(message, url, *, key=None):
    """Returns a question that sends the user to a URL; the answer is the elicitation's id.

    Args:
        message: The text that the user reads.
        url: An absolute URL.
        key: As for `elicit`.

    Raises:
        ValueError: The URL is not absolute.

    Spec: Client Features › Elicitation › URL mode.
    """
    if not isinstance(url, str) or "://" not in url:
        raise ValueError(f"elicit_url takes an absolute URL such as https://example.org/in, not {url!r}")
    _check_message(message)
    params = {"mode": "url", "message": message, "url": url}
    return Question(
        "elicit_url", "elicitation/create", message, params, lambda result: result.get("elicitationId", ""), key
    )


def sample(messages, *, key=None, **options):
    """Returns a question to the client's model; the answer is a `SampleResult`.

    Args:
        messages: A string, a `Message`, or a list of them.
        key: As for `elicit`.
        max_tokens: Default 1024.
        system, temperature, stop, tool_choice: Parameters for the model.
        models: Names or parts of names, best first.
        cost_priority, speed_priority, intelligence_priority: From 0 to 1.
        tools: `Tool` values, their JSON, or functions.

    Raises:
        TypeError: An option does not exist, or one of the tools is not a tool.

    Spec: Client Features › Sampling.

    >>> sample("Sum it up.", max_tokens=50).params["maxTokens"]
    50
    """
    given = messages_of(messages)
    options.setdefault("max_tokens", 1024)
    known = {name for name in SampleRequest._fields if name not in ("messages", "server")}
    unknown = next((name for name in options if name not in known), None)
    if unknown is not None:
        from ._model.unknown import unknown_name

        raise unknown_name("sample()", "option", unknown, {*known, "key"}, _SAMPLE_HINTS)
    for name in ("models", "stop"):
        if isinstance(options.get(name), str):
            options[name] = (options[name],)
        elif name in options:
            options[name] = tuple(options[name])
    if "tools" in options:
        options["tools"] = tuple(_tool(item) for item in options["tools"])
    params = SampleRequest(messages=given, **options).to_dict()
    return Question(
        "sample", "sampling/createMessage", given[-1].text if given else "", params, SampleResult.from_dict, key
    )


# Options of other SDKs: the option here, or the fix.
_SAMPLE_HINTS = {
    "system_prompt": "system",
    "model_preferences": "write models=[…], cost_priority=, speed_priority= or intelligence_priority=",
    "stop_sequences": "stop",
}


def _tool(item):
    if isinstance(item, Tool):
        return item
    if isinstance(item, dict):
        return Tool.from_dict(item)
    if not callable(item):
        raise TypeError(f"tools= takes Tool, its JSON, or a function, not {type(item).__name__}")
    import json

    from ._plan.plan import make_plan

    plan = make_plan("tool", item)
    return Tool(name=plan.name, description=plan.description or None, input_schema=json.loads(plan.input_schema))


def roots(*, key=None):
    """Returns a question for the folders that the client lets a server work in; the answer is a list of `Root`.

    Spec: Client Features › Roots.
    """
    read = lambda result: [Root.from_dict(item) for item in result["roots"]]  # noqa: E731
    return Question("roots", "roots/list", "roots", {}, read, key)


def _check_message(message):
    if not isinstance(message, str) or not message:
        raise TypeError(f"a question needs a message, a non-empty string, not {message!r}")
