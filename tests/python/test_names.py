"""What `import gudgeon` gives, by name."""

import ast
from pathlib import Path

import gudgeon

STUB = Path(gudgeon.__file__).with_suffix(".pyi")


def test_a_star_imports_what_the_stub_declares() -> None:
    given: dict[str, object] = {}
    exec("from gudgeon import *", given)
    del given["__builtins__"]
    declared = set()
    for statement in ast.parse(STUB.read_text()).body:
        if isinstance(statement, ast.ImportFrom):
            declared |= {it.asname for it in statement.names if it.asname == it.name}
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            declared.add(statement.name)
        elif isinstance(statement, ast.Assign):
            declared |= {it.id for it in statement.targets if isinstance(it, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            declared.add(statement.target.id)
    public = {it for it in declared if it is not None and not it.startswith("_")}
    modules = {"auth", "client", "context", "errors", "middleware", "server", "testing", "types"}
    assert set(given) == public - modules
