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
    modules = {"client", "context", "errors", "middleware", "server", "testing", "types"}
    assert set(given) == public - modules


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
