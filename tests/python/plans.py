"""Plans of handlers, called without a server."""

import asyncio
import json
from typing import Any

from gudgeon._plan.plan import Plan, make_plan


def tool(fn: Any, **options: Any) -> Plan:
    return make_plan("tool", fn, "app", **options)


def call(plan: Plan, /, **arguments: Any) -> Any:
    out = plan.invoke(json.dumps(arguments).encode(), "call")
    return asyncio.run(out) if plan.is_async else out


def schema(plan: Plan) -> Any:
    return json.loads(plan.input_schema)


def output(plan: Plan) -> Any:
    return None if plan.output_schema is None else json.loads(plan.output_schema)
