"""URI templates (RFC 6570) of resources, and their variables."""

from __future__ import annotations

import re
from typing import Any

from .._native import variables
from .._plan.plan import Plan


def is_template(uri: str) -> bool:
    """Returns whether a string is a URI template (RFC 6570), and not a URI or the name of a prompt."""
    return "{" in uri


def check_variables(plan: Plan, uri: str) -> None:
    """Raises TypeError if the variables of a template are not the function's parameters."""
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


def path_parameters(plan: Plan) -> list[str]:
    """Returns the names of the parameters that are paths of the file system, by their type."""
    from msgspec.json import decode

    return [name for name, schema in decode(plan.input_schema)["properties"].items() if _is_path(schema)]


def _is_path(schema: Any) -> bool:
    parts = [*schema.get("anyOf", ()), schema.get("items")]
    return str(schema.get("format", "")).endswith("path") or any(_is_path(part) for part in parts if part)


def _takes_list(schema: Any) -> bool:
    if "anyOf" in schema:
        return any(_takes_list(part) for part in schema["anyOf"])
    kinds = schema.get("type", "array")
    return "array" in kinds if isinstance(kinds, list) else kinds == "array"
