"""The names of `import gudgeon`."""

import ast
import importlib
from pathlib import Path

import pytest

import gudgeon

STUB = Path(gudgeon.__file__).with_suffix(".pyi")
PUBLIC = ("ask", "auth", "client", "context", "errors", "middleware", "server", "testing", "testing.auth", "types")
# Names for annotations, which the package has at run time.
FOR_ANNOTATIONS = {"CallOptions", "ClientOptions", "Target", "Transport"}


def test_a_star_imports_what_the_stub_declares() -> None:
    given: dict[str, object] = {}
    exec("from gudgeon import *", given)
    del given["__builtins__"]
    declared = set()
    for statement in ast.parse(STUB.read_text()).body:
        if isinstance(statement, ast.ImportFrom):
            declared |= {alias.asname for alias in statement.names if alias.asname == alias.name}
        elif isinstance(statement, (ast.ClassDef, ast.FunctionDef)):
            declared.add(statement.name)
        elif isinstance(statement, ast.Assign):
            declared |= {target.id for target in statement.targets if isinstance(target, ast.Name)}
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            declared.add(statement.target.id)
    public = {name for name in declared if name is not None and not name.startswith("_")}
    modules = {"client", "context", "errors", "middleware", "server", "testing", "types"}
    assert set(given) == public - modules


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_list_public_names_only(name: str) -> None:
    module = importlib.import_module(f"gudgeon.{name}")
    assert [
        attribute for attribute in module.__all__ if attribute.startswith("_") or not hasattr(module, attribute)
    ] == []
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    if stub.exists():
        (listed,) = (
            ast.literal_eval(statement.value)
            for statement in ast.parse(stub.read_text()).body
            if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__"
        )
        assert set(listed) - FOR_ANNOTATIONS == set(module.__all__)


def test_the_version_is_the_distributions() -> None:
    from importlib.metadata import version

    assert gudgeon.__version__ == version("gudgeon")


def test_the_metadata_has_links_and_python_versions() -> None:
    from importlib.metadata import metadata

    told = metadata("gudgeon")
    urls = dict(url.split(", ", 1) for url in told.get_all("Project-URL") or [])
    assert {"Homepage", "Repository", "Documentation", "Changelog", "Issues"} <= set(urls)
    assert all(url.startswith("https://") for url in urls.values())
    classifiers = told.get_all("Classifier") or []
    assert "Typing :: Typed" in classifiers and "Programming Language :: Python :: 3.10" in classifiers
