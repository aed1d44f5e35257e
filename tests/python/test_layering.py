"""The binding's modules import leftwards only, and never in a circle. Change `LAYERS` and ARCHITECTURE.md together."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import gudgeon

PACKAGE = Path(gudgeon.__file__).parent
# Leftmost first: a module imports its own layer and those before it. A name is a package or a public module.
LAYERS = (
    "_native",
    "_model",
    "types",
    "errors",
    "auth",
    "_schema",
    "_plan",
    "ask",
    "_call",
    "context",
    "_server",
    "middleware",
    "_serving",
    "server",
    "_client",
    "client",
    "_testing",
    "testing",
    "__init__",
)
# A package that stands on fewer layers than its place allows.
ONLY = {"_client": {"_native", "_model", "types", "errors", "_schema"}}


def modules(package: Path) -> dict[str, ast.Module]:
    """The syntax trees of all modules of a package, by name: `types`, `_plan.invoke`, `__init__`, `_plan.__init__`."""
    return {
        ".".join(path.relative_to(package).with_suffix("").parts): ast.parse(path.read_text(encoding="utf-8"))
        for path in package.rglob("*.py")
    }


def imports(name: str, tree: ast.Module, known: Mapping[str, ast.Module]) -> Iterator[str]:
    """The modules of this package that a module imports anywhere: in functions and for type checkers as well."""
    parents = name.split(".")[:-1]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                base = [*parents[: len(parents) - node.level + 1], *(node.module or "").split(".")]
            elif node.module is not None and node.module.split(".")[0] == "gudgeon":
                base = node.module.split(".")[1:]
            else:
                continue
            base = [part for part in base if part]
            for alias in node.names:
                yield _module([*base, alias.name], known)
        elif isinstance(node, ast.Import):
            for alias in node.names:
                first, *rest = alias.name.split(".")
                if first == "gudgeon":
                    yield _module(rest, known)
        elif isinstance(node, ast.Call) and "import_module" in ast.unparse(node.func):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant) and str(argument.value).split(".")[0] == "gudgeon":
                    yield _module(str(argument.value).split(".")[1:], known)


def _module(path: list[str], known: Mapping[str, ast.Module]) -> str:
    """The module that holds this dotted path, which may end with names of things in it."""
    while path and path != ["_native"]:
        for name in (".".join(path), ".".join([*path, "__init__"])):
            if name in known:
                return name
        path = path[:-1]
    return ".".join(path) or "__init__"


def layer(name: str) -> str:
    return name.partition(".")[0]


def wrong_directions(package: Path) -> list[str]:
    """The imports that lead to the right."""
    known = modules(package)
    found = []
    for name, tree in known.items():
        own = layer(name)
        for other in sorted(set(imports(name, tree, known))):
            target = layer(other)
            if target == own:
                continue
            if LAYERS.index(target) > LAYERS.index(own) or target not in ONLY.get(own, LAYERS):
                found.append(f"{name} imports {other}")
    return sorted(found)


def cycles(package: Path) -> list[str]:
    """The circles of modules that import each other."""
    known = modules(package)
    graph = {name: sorted(set(imports(name, tree, known)) - {name}) for name, tree in known.items()}
    found: list[str] = []
    done: set[str] = set()

    def visit(name: str, path: list[str]) -> None:
        if name in path:
            found.append(" → ".join([*path[path.index(name) :], name]))
        elif name not in done:
            for other in graph.get(name, ()):
                visit(other, [*path, name])
            done.add(name)

    for name in sorted(graph):
        visit(name, [])
    return found


def flat(package: Path) -> list[str]:
    """The modules at the top that have no layer: private ones belong into a package."""
    return sorted(path.stem for path in package.glob("*.py") if path.stem not in LAYERS)


def test_imports_lead_to_the_left() -> None:
    assert wrong_directions(PACKAGE) == []


def test_no_modules_import_each_other() -> None:
    assert cycles(PACKAGE) == []


def test_private_modules_stand_in_packages() -> None:
    assert flat(PACKAGE) == []
    assert {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()} <= set(LAYERS)


@pytest.mark.parametrize(
    ("place", "line", "check"),
    [
        ("_model/value", "from ..errors import McpError", wrong_directions),
        ("_model/value", "from .. import errors", wrong_directions),
        ("_model/value", "def read():\n    from .._plan.invoke import build", wrong_directions),
        ("_model/value", "if TYPE_CHECKING:\n    import gudgeon.server", wrong_directions),
        ("_model/value", "from importlib import import_module\nimport_module('gudgeon.context')", wrong_directions),
        ("_client/core", "from .._call import entry", wrong_directions),
        ("_plan/invoke", "from .. import Server", wrong_directions),
        ("_model/value", "def read():\n    from .json import encode", cycles),
        ("_client/sync", "if TYPE_CHECKING:\n    from .group import Group", cycles),
        ("_extra", "", flat),
    ],
)
def test_a_violation_is_found(tmp_path: Path, place: str, line: str, check: object) -> None:
    sources = {
        "__init__": "from .server import Server",
        "errors": "",
        "context": "",
        "server": "from ._plan.invoke import build",
        "_model/__init__": "",
        "_model/value": "",
        "_model/json": "from . import value",
        "_plan/__init__": "",
        "_plan/invoke": "from .._model.json import encode",
        "_call/__init__": "",
        "_call/entry": "",
        "_client/__init__": "",
        "_client/core": "",
        "_client/sync": "from .core import Core",
        "_client/group": "from . import sync",
    }

    def write() -> None:
        for name, text in sources.items():
            path = tmp_path / f"{name}.py"
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)

    write()
    assert (wrong_directions(tmp_path), cycles(tmp_path), flat(tmp_path)) == ([], [], [])
    sources[place] = f"{sources.get(place, '')}\n{line}"
    write()
    assert callable(check) and check(tmp_path) != []
