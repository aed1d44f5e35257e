"""Makes a plan of a function at registration. Only the plan's `invoke` runs for a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from .._model.json import encode
from .._schema import docstrings as _docstrings
from .._schema.annotations import target
from .._schema.json_schema import Profile, own_schema, schema_of
from .._schema.render import default_of
from .._schema.type_hints import SchemaError, header_of, union_members, unwrap, uses_pydantic
from . import replies as _replies
from .depends import Overrides
from .invoke import Argument, build
from .output import output_of
from .parameter import Parameter
from .questions import names_questions
from .signature import Signature

Kind = Literal["tool", "resource", "prompt", "completion", "method", "notification"]
UNSET: Any = object()
_REPLIES: dict[str, Callable[[str], Callable[[Any], Any]]] = {
    "prompt": _replies.prompt_reply,
    "completion": _replies.completion_reply,
    "method": _replies.method_reply,
    "notification": _replies.notification_reply,
}
_COMPLETION = ("value", "arguments")


class Plan:
    """A handler's schemas, names and compiled call.

    Attributes:
        name: the function's name
        description: its docstring without the parameters
        input_schema: JSON Schema of its arguments, as JSON
        output_schema: JSON Schema of its result as JSON, or None
        names_questions: whether its return annotation names a question
        arguments: for a prompt, its arguments as in `prompts/list`
        parameters: the names of the parameters that the caller passes, and whether each is required
        validates: whether pydantic reads arguments, so that its models decide what is valid
        invoke: `invoke(raw, call)` → a reply, or a coroutine of one where `is_async`
    """

    __slots__ = (
        "arguments",
        "description",
        "fn",
        "input_schema",
        "invoke",
        "is_async",
        "name",
        "names_questions",
        "output_schema",
        "parameters",
        "place",
        "validates",
        "wants_context",
    )

    fn: Callable[..., Any]
    name: str
    place: str
    description: str
    input_schema: bytes
    output_schema: bytes | None
    names_questions: bool
    arguments: list[dict[str, Any]]
    parameters: dict[str, bool]
    is_async: bool
    validates: bool
    wants_context: bool
    invoke: Callable[[Any, Any], Any]


def make_plan(
    kind: Kind,
    fn: Callable[..., Any],
    app: Any = None,
    *,
    name: str | None = None,
    given: Any = None,
    output: Any = UNSET,
    profile: Profile = "portable",
    overrides: Overrides | None = None,
) -> Plan:
    """Reads a handler's signature and docstring. Raises TypeError with the fix.

    Args:
        given: A JSON Schema in place of the one made from the parameters.
    """
    if not callable(fn) and not isinstance(fn, classmethod):
        raise TypeError(f"a {kind} is a function, not {type(fn).__name__}")
    signature = Signature(fn)
    plan = Plan()
    plan.fn, plan.place, plan.is_async = fn, signature.place, signature.is_async
    plan.name = name or _name(fn, kind, signature.place)
    plan.description, texts = _docstrings.parse(getattr(target(fn), "__doc__", None))
    plan.wants_context = any(parameter.context for parameter in signature.parameters)
    filled = [
        parameter for parameter in signature.parameters if parameter.context is None and parameter.depends is None
    ]
    _check_completion(kind, filled, signature.place)

    lax = kind in ("resource", "prompt")
    schema, structured = _input_schema(filled, texts, signature.place, profile, headers=kind == "tool")
    plan.input_schema = encode(schema if given is None else _given_schema(given, filled, signature.place, profile))
    plan.parameters = {parameter.wire: parameter.required for parameter in filled}
    plan.validates = given is None and any(uses_pydantic(parameter.annotation) for parameter in filled)
    plan.arguments = _prompt_arguments(filled, schema, structured) if kind == "prompt" else []
    plan.output_schema = None
    plan.names_questions = names_questions(signature.returns if output is UNSET else output)
    if kind == "tool":
        answer = output_of(signature, None if output is UNSET else output, output is not UNSET, profile)
        plan.output_schema = None if answer.schema is None else encode(answer.schema)
        reply = _replies.tool_reply(plan.place, has_schema=answer.schema is not None, is_content=answer.is_content)
    elif kind == "resource":
        reply = _replies.resource_reply(plan.place, has_null=_has_null(signature))
    else:
        reply = _REPLIES[kind](plan.place)
    arguments = [
        Argument(
            parameter,
            _COMPLETION[at] if kind == "completion" else parameter.wire,
            plan.input_schema,
            lax=lax,
            as_json=lax
            and parameter.wire in structured
            and (kind == "prompt" or structured[parameter.wire] == "object"),
        )
        for at, parameter in enumerate(filled)
    ]
    try:
        plan.invoke = build(
            signature,
            arguments,
            reply,
            app=app,
            overrides=overrides or Overrides(),
            lax=lax,
            text=kind in ("tool", "resource", "prompt"),
        )
    except NotImplementedError as error:
        raise TypeError(f"{signature.place}: {error}") from None
    return plan


def _name(fn: Any, kind: str, place: str) -> str:
    name = getattr(fn, "__name__", None) or getattr(getattr(fn, "func", None), "__name__", None)
    name = name or type(fn).__name__
    if name == "<lambda>":
        raise TypeError(f"{place} is a lambda and has no name: pass name=, or use a def")
    return str(name)


def _has_null(signature: Signature) -> bool:
    """True if a resource may return None. A resource that returns nothing else is a TypeError."""
    if signature.returns is None or unwrap(signature.returns) is type(None):
        raise TypeError(
            f"{signature.place} returns None, as its annotation says: a resource returns str, bytes, JSON or a "
            "ResourceResult"
        )
    return any(unwrap(member) in (None, type(None)) for member in union_members(signature.returns))


def _check_completion(kind: str, filled: list[Parameter], place: str) -> None:
    if kind == "completion" and not 1 <= len(filled) <= 2:
        raise TypeError(
            f"{place} takes {len(filled)} parameters: a completion takes the text typed so far and optionally the "
            "other arguments, (prefix: str, arguments: dict[str, str])"
        )
    if kind == "completion" and len(filled) == 2 and filled[1].required:
        filled[1].factory = dict


def _input_schema(
    filled: list[Parameter], texts: Mapping[str, str], place: str, profile: Profile, headers: bool
) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns the schema, with the headers that repeat arguments, and the parameters that are arrays or objects."""
    properties: dict[str, Any] = {}
    defs: dict[str, Any] = {}
    structured: dict[str, str] = {}
    for parameter in filled:
        try:
            header = header_of(parameter.annotation) if headers else None
            schema = schema_of(
                parameter.annotation, profile=profile, headers=headers, numbers=header is None, defs=defs
            )
        except SchemaError as error:
            raise TypeError(f"parameter {parameter.name!r} of {place}: {error}") from None
        description = texts.get(parameter.name) or texts.get(parameter.wire)
        own = getattr(parameter.annotation, "__metadata__", ())
        if description and not ("description" in schema and own):
            schema = {
                "description": description,
                **{key: value for key, value in schema.items() if key != "description"},
            }
        if not parameter.required and parameter.factory is None:
            schema.update(default_of(parameter.default))
        if header is not None:
            schema["x-mcp-header"] = header
        properties[parameter.wire] = schema
        shape = _shape(schema, defs)
        if shape:
            structured[parameter.wire] = shape
    out: dict[str, Any] = {"type": "object", "properties": properties}
    required = [parameter.wire for parameter in filled if parameter.required]
    if required:
        out["required"] = required
    if defs:
        out["$defs"] = defs
    return out, structured


def _given_schema(given: Any, filled: list[Parameter], place: str, profile: Profile) -> dict[str, Any]:
    """Returns a schema that the user wrote, in the form of the profile."""
    if not isinstance(given, Mapping):
        raise TypeError(f"input= of {place} is a JSON Schema, a dict, not {type(given).__name__}")
    properties = given.get("properties") or {}
    for parameter in filled:
        if parameter.required and parameter.wire not in properties:
            raise TypeError(
                f"parameter {parameter.wire!r} of {place} is not in input=, which has "
                f"{', '.join(map(repr, properties)) or 'no properties'}: name it there, or give it a default"
            )
    return own_schema(given, f"input= of {place}", profile)


def _shape(schema: Mapping[str, Any], defs: Mapping[str, Any]) -> str | None:
    """Returns "array" or "object" if every value of this schema but null is one, else None."""
    if "$ref" in schema:
        schema = defs.get(str(schema["$ref"]).rpartition("/")[2], {})
    kinds = schema.get("type")
    names = {kind for kind in ([kinds] if isinstance(kinds, str) else kinds or ()) if kind != "null"}
    if not names and "anyOf" in schema:
        shapes = {_shape(part, defs) for part in schema["anyOf"] if part != {"type": "null"}}
        return shapes.pop() if len(shapes) == 1 else None
    return names.pop() if len(names) == 1 and names <= {"array", "object"} else None


def _prompt_arguments(
    filled: list[Parameter], schema: Mapping[str, Any], structured: Mapping[str, str]
) -> list[dict[str, Any]]:
    out = []
    for parameter in filled:
        description = schema["properties"][parameter.wire].get("description")
        if parameter.wire in structured:
            description = f"{description} (as JSON)" if description else "as JSON"
        about = {"description": description} if description else {}
        out.append({"name": parameter.wire, **about, "required": parameter.required})
    return out
