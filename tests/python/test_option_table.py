"""The options of Python's signatures are those of the core's table."""

import ast
from pathlib import Path

import pytest

import gudgeon
from gudgeon._native import check_options

STUBS = Path(gudgeon.__file__).parent
# The functions that take options: the type of most options, the function, and the options that its signature names.
DECLARED = {
    "server": ("__init__.pyi", "ServerOptions", "Server.__init__", {"name", "lifespan"}),
    "tool": ("__init__.pyi", "ToolOptions", "Server.tool", {"name"}),
    "resource": ("__init__.pyi", "ResourceOptions", "Server.resource", set()),
    "prompt": ("__init__.pyi", "PromptOptions", "Server.prompt", {"name"}),
    "http": ("__init__.pyi", "HttpOptions", "Server.listen", set()),
    "client": ("client.pyi", "ClientOptions", "Client.__init__", set()),
    "call": ("client.pyi", "CallOptions", "Client.call_tool", {"returns"}),
}


@pytest.mark.parametrize("taker", DECLARED)
def test_each_option_has_an_entry_in_the_cores_table_and_each_entry_an_option(taker: str) -> None:
    file, options, function, beside = DECLARED[taker]
    stub = ast.parse((STUBS / file).read_text("utf-8"))
    fields = (statement.target for statement in body(stub, options) if isinstance(statement, ast.AnnAssign))
    declared = {field.id for field in fields if isinstance(field, ast.Name)}
    assert len(declared) > 2
    assert beside <= named(stub, function)
    assert declared | beside == names(taker)


def names(taker: str) -> set[str]:
    """Returns all names in the table, which the error about an unknown option lists."""
    with pytest.raises(TypeError) as caught:
        check_options(taker, "here", {"": 0})
    return set(str(caught.value).partition("it takes ")[2].split(", "))


def named(stub: ast.Module, function: str) -> set[str]:
    """Returns the parameters of a function, in all its overloads."""
    owner, name = function.split(".")
    found = [
        statement
        for statement in body(stub, owner)
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef) and statement.name == name
    ]
    assert found
    return {
        parameter.arg for one in found for parameter in [*one.args.posonlyargs, *one.args.args, *one.args.kwonlyargs]
    }


def body(stub: ast.Module, name: str) -> list[ast.stmt]:
    return next(
        statement.body for statement in stub.body if isinstance(statement, ast.ClassDef) and statement.name == name
    )
