"""Registrations as clients see them: name, place and description."""

from __future__ import annotations

from typing import Any

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
