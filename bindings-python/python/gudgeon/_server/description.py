"""Registrations as clients see them: name, place and description."""

from __future__ import annotations

import re
from typing import Any

from .._plan.plan import Plan
from . import options as _options
from .registration import Registration


def described(registration: Registration, key: Any) -> dict[str, Any]:
    """Returns a component's declaration for the native half, with its options."""
    from msgspec import Raw

    plan, options, kind = registration.plan, registration.options, registration.kind
    said: dict[str, Any] = {"description": plan.description} if plan.description else {}
    said |= _options.spec(options)
    if options.get("visible") is not None:
        said["guarded"] = True
    if kind == "tools":
        said |= {"name": key, "inputSchema": Raw(plan.input_schema)}
        # A schema that the user wrote says by itself whether it is closed.
        if options.get("input") is None and options.get("unknown_arguments", "refuse") == "refuse":
            said["closed"] = True
        if plan.output_schema is not None:
            said["outputSchema"] = Raw(plan.output_schema)
    elif kind == "prompts":
        said |= {"name": key, "arguments": plan.arguments}
    else:
        said |= {"name": plan.name, "uri" if kind == "resources" else "uriTemplate": key}
    return said


def is_template(uri: str) -> bool:
    """Returns whether a string is a URI template (RFC 6570), and not a URI or the name of a prompt."""
    return "{" in uri


def prefixed(kind: str, prefix: str, key: Any) -> Any:
    """Returns the key of a component in the server that its server is mounted into."""
    if kind in ("tools", "prompts"):
        return f"{prefix}_{key}"
    if kind == "completions" and not is_template(key[0]):
        return f"{prefix}_{key[0]}", key[1]
    return key


def check_prefix(prefix: Any) -> None:
    """Raises TypeError or ValueError for a prefix that no name can begin with."""
    if not isinstance(prefix, str):
        raise TypeError(f"mount(): prefix= is a string, not {prefix!r}")
    if not prefix or not all(it.isascii() and (it.isalnum() or it in "_-.") for it in prefix):
        raise ValueError(f"mount({prefix!r}): a prefix is one or more letters, digits, '_', '-' or '.'")


def check_variables(plan: Plan, uri: str) -> None:
    """Raises TypeError if the variables of a template are not the function's parameters."""
    from .._native import variables

    given: list[str] = variables(uri)
    for name, required in plan.parameters.items():
        if required and name not in given:
            raise TypeError(
                f"parameter {name!r} of {plan.place} is not in {uri!r}: it has {', '.join(given) or 'no variables'}"
            )
    _check_lists(plan, uri)
    unknown = [name for name in given if name not in plan.parameters]
    if unknown:
        raise TypeError(
            f"{plan.place} has no parameter {unknown[0]!r} for the variable in {uri!r}: add {unknown[0]}: str"
        )


def _check_lists(plan: Plan, uri: str) -> None:
    """Refuses `{path*}` for a parameter that takes no list: with `*`, RFC 6570 makes a list of a variable."""
    from msgspec.json import decode

    properties = decode(plan.input_schema)["properties"]
    for operator, names in re.findall(r"\{([+#./;?&]?)([^{}]+)\}", uri):
        for name in names.split(","):
            bare = name.removesuffix("*")
            if bare != name and bare in properties and not _takes_list(properties[bare]):
                single = f"{{{operator or '+'}{bare}}}"
                slashes = "" if operator else ", slashes included"
                raise TypeError(
                    f"{plan.place}: {name!r} in {uri!r} is a list (RFC 6570), but parameter {bare!r} takes none; "
                    f"write {single!r} for one string{slashes}, or declare {bare}: list[str]"
                )


def _takes_list(schema: Any) -> bool:
    if "anyOf" in schema:
        return any(_takes_list(part) for part in schema["anyOf"])
    kinds = schema.get("type", "array")
    return "array" in kinds if isinstance(kinds, list) else kinds == "array"
