"""Editors show the docstrings of the source: stubs have none of their own to hide them."""

import ast
import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest

import gudgeon
from editors import LanguageServer

PACKAGE = Path(gudgeon.__file__).parent
STUBS = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.pyi") if path.stem != "_native")
PROGRAM = """\
from gudgeon import Client, ClientGroup, Context, Image, Request, Server, SyncClient, SyncContext, ask, errors, testing

def shown(app: Server, client: Client, sync: SyncClient, group: ClientGroup, ctx: Context, sctx: SyncContext) -> None:
"""
SHOWN: dict[str, Any] = {
    "Server": gudgeon.Server,
    "Client": gudgeon.Client,
    "Context": gudgeon.Context,
    "Image": gudgeon.Image,
    "Request": gudgeon.Request,
    "errors.ToolError": gudgeon.errors.ToolError,
    "testing.connect": gudgeon.testing.connect,
    "ask.elicit": gudgeon.ask.elicit,
    "app.tool": gudgeon.Server.tool,
    "app.resource": gudgeon.Server.resource,
    "app.run": gudgeon.Server.run,
    "app.tools.update": gudgeon.Registry.update,
    "client.call_tool": gudgeon.Client.call_tool,
    "client.subscribe": gudgeon.Client.subscribe,
    "client.set_roots": gudgeon.Client.set_roots,
    "sync.call_tool": gudgeon.SyncClient.call_tool,
    "group.list_tools": gudgeon.ClientGroup.list_tools,
    "ctx.elicit": gudgeon.Context.elicit,
    "ctx.answer": gudgeon.Context.answer,
    "sctx.progress": gudgeon.SyncContext.progress,
}


@pytest.mark.io
def test_editors_show_the_whole_docstring(tmp_path: Path) -> None:
    with LanguageServer(tmp_path) as server:
        path = server.open(PROGRAM + "".join(f"    {expression}\n" for expression in SHOWN))
        first = PROGRAM.count("\n")
        for line, (expression, documented) in enumerate(SHOWN.items(), first):
            hovered = server.hover(path, line, len(expression) + 3)
            assert documented.__doc__ is not None
            last = inspect.cleandoc(documented.__doc__).splitlines()[-1]
            assert last in hovered, f"hovering over {expression} does not show {last!r} but {hovered!r}"


@pytest.mark.parametrize("stub", STUBS, ids=lambda path: ".".join(path.with_suffix("").parts))
def test_no_stub_hides_a_docstring(stub: Path) -> None:
    name = ".".join(("gudgeon", *stub.with_suffix("").parts))
    module: Any = importlib.import_module(name.removesuffix(".__init__"))
    hidden = []

    def look(body: list[ast.stmt], it: Any, path: str) -> None:
        told = body and isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str)
        if told and getattr(it, "__doc__", None) and it is not dict:
            hidden.append(path)
        for statement in body:
            if isinstance(statement, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
                look(statement.body, getattr(it, statement.name, None), f"{path}.{statement.name}")

    look(ast.parse((PACKAGE / stub).read_text(encoding="utf-8")).body, module, stub.stem)
    assert not hidden, f"{stub.name} has docstrings that hide those of the source: {', '.join(hidden)}"
