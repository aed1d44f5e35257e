"""Registrations as clients see them: name, place and description."""

from __future__ import annotations

from typing import Any

from .._native import declared_options
from .registration import Registration
from .templates import path_parameters


def described(registration: Registration, key: Any) -> dict[str, Any]:
    """Returns a component's declaration for the native half, with its options."""
    from msgspec import Raw

    plan, options, kind = registration.plan, registration.options, registration.kind
    declaration: dict[str, Any] = {"description": plan.description} if plan.description else {}
    declaration |= declared_options(_TAKERS[kind], options)
    if options.get("visible") is not None:
        declaration["guarded"] = True
    if kind == "tools":
        declaration |= {"name": key, "inputSchema": Raw(plan.input_schema)}
        # A schema that the user wrote says by itself whether it is closed.
        if options.get("input") is None and options.get("unknown_arguments", "refuse") == "refuse":
            declaration["closed"] = True
        # What a model accepts and says is its author's decision.
        if plan.validates:
            declaration["validates"] = True
        if plan.output_schema is not None:
            declaration["outputSchema"] = Raw(plan.output_schema)
    elif kind == "prompts":
        declaration |= {"name": key, "arguments": plan.arguments}
    else:
        declaration |= {"name": plan.name, "uri" if kind == "resources" else "uriTemplate": key}
        if kind == "templates":
            declaration["paths"] = [*declaration.get("paths", ()), *path_parameters(plan)]
    return declaration


_TAKERS = {"tools": "tool", "resources": "resource", "templates": "resource", "prompts": "prompt"}
