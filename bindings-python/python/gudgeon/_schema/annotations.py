"""Resolves a function's annotations to types, also strings, imports for type checkers only, and names of locals."""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
import linecache
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Any


class Unresolved(Exception):
    """An annotation names something that does not exist at run time."""


def target(fn: Any) -> Any:
    """Returns the function that holds the annotations and the code, inside partials, wrappers and callable objects."""
    while True:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif hasattr(fn, "__wrapped__"):
            fn = fn.__wrapped__
        elif inspect.ismethod(fn):
            fn = fn.__func__
        elif inspect.isclass(fn):
            return fn.__init__
        elif hasattr(fn, "__code__") or not hasattr(type(fn).__call__, "__code__"):
            return fn
        else:
            fn = type(fn).__call__


def place(fn: Any) -> str:
    """Returns the function's name and place for errors: `'add' (server.py:12)`."""
    inner = target(fn)
    name = getattr(inner, "__qualname__", None) or repr(fn)
    name = name.rpartition("<locals>.")[2]
    code = getattr(inner, "__code__", None)
    if code is None:
        return f"{name!r}"
    file = code.co_filename.replace("\\", "/").rpartition("/")[2]
    return f"{name!r} ({file}:{code.co_firstlineno})"


def raw_annotations(fn: Callable[..., Any]) -> dict[str, Any]:
    """Returns the annotations as they are: types, or strings where these were written or can't be evaluated."""
    inner = target(fn)
    try:
        return dict(getattr(inner, "__annotations__", None) or {})
    except NameError:  # Python 3.14 evaluates late
        import annotationlib  # type: ignore[import-not-found,unused-ignore]

        found: dict[str, Any] = annotationlib.get_annotations(inner, format=annotationlib.Format.STRING)
        return found


def resolve(annotation: Any, fn: Callable[..., Any], base: type | None = None) -> Any:
    """Returns the annotation as a type. A subclass of `base` with type arguments is found without resolving these."""
    inner = target(fn)
    scope = getattr(inner, "__globals__", {})
    local = _known_locals(inner)
    if isinstance(annotation, str):
        head = _head(annotation)
        if head is not None:
            found = _lookup(head, scope, local, inner)
            if base is not None and isinstance(found, type) and issubclass(found, base):
                return found
    for name in _names(annotation):
        if name not in local and name not in scope and not hasattr(builtins, name):
            value = _search(name, inner)
            if value is not _NOTHING:
                local[name] = value
    carrier = types.SimpleNamespace(__annotations__={"it": annotation})
    try:
        return typing.get_type_hints(carrier, dict(scope), local, include_extras=True)["it"]
    except NameError as error:
        raise Unresolved(f"name {error.name!r} is not defined at run time") from None
    except Exception as error:
        raise Unresolved(str(error)) from None


_NOTHING = object()


def _known_locals(inner: Any) -> dict[str, Any]:
    """Returns the names of enclosing functions, and type parameters, with their values."""
    out: dict[str, Any] = {}
    for holder in (inner, getattr(inner, "__annotate__", None)):
        code, cells = getattr(holder, "__code__", None), getattr(holder, "__closure__", None)
        for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
            try:
                out[name] = cell.cell_contents
            except ValueError:  # not bound yet
                continue
    for parameter in getattr(inner, "__type_params__", ()):
        out[parameter.__name__] = parameter
    return out


def _head(text: str) -> ast.expr | None:
    """Returns the part before the bracket: `Context` of `Context[Db]`, `gudgeon.Context` of itself."""
    try:
        node = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError):
        return None
    return node.value if isinstance(node, ast.Subscript) else node


def _lookup(node: ast.expr, scope: Mapping[str, Any], local: Mapping[str, Any], inner: Any) -> Any:
    if isinstance(node, ast.Attribute):
        return getattr(_lookup(node.value, scope, local, inner), node.attr, _NOTHING)
    if not isinstance(node, ast.Name):
        return _NOTHING
    for names in (local, scope):
        if node.id in names:
            return names[node.id]
    return _search(node.id, inner)


def _names(annotation: Any) -> set[str]:
    """Returns all names in the string parts of an annotation."""
    if isinstance(annotation, typing.ForwardRef):
        annotation = annotation.__forward_arg__
    if isinstance(annotation, str):
        try:
            tree = ast.parse(annotation.strip(), mode="eval")
        except (SyntaxError, ValueError):
            return set()
        out = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                out |= _names(node.value)
        return out
    if typing.get_origin(annotation) is typing.Literal:
        return set()
    return {name for part in typing.get_args(annotation) for name in _names(part)}


def _search(name: str, inner: Any) -> Any:
    """Looks a name up in `if TYPE_CHECKING:` blocks and in the function that registers."""
    scope = getattr(inner, "__globals__", {})
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals is scope and name in frame.f_locals:
            return frame.f_locals[name]
        frame = frame.f_back  # type: ignore[assignment]
    code = getattr(inner, "__code__", None)
    for statement in _checking_imports(code.co_filename) if code else ():
        for alias in statement.names:
            if (alias.asname or alias.name.partition(".")[0]) == name:
                return _import(statement, alias, scope)
    return _NOTHING


@functools.lru_cache(maxsize=64)
def _checking_imports(filename: str) -> tuple[ast.Import | ast.ImportFrom, ...]:
    try:
        tree = ast.parse("".join(linecache.getlines(filename)))
    except (SyntaxError, ValueError):
        return ()
    out: list[ast.Import | ast.ImportFrom] = []
    for block in ast.walk(tree):
        if isinstance(block, ast.If) and ast.unparse(block.test).rpartition(".")[2] == "TYPE_CHECKING":
            out += [item for item in ast.walk(block) if isinstance(item, (ast.Import, ast.ImportFrom))]
    return tuple(out)


def _import(statement: ast.Import | ast.ImportFrom, alias: ast.alias, scope: Mapping[str, Any]) -> Any:
    from importlib import import_module

    try:
        if isinstance(statement, ast.Import):
            module = import_module(alias.name)
            return module if alias.asname else sys.modules[alias.name.partition(".")[0]]
        path = "." * statement.level + (statement.module or "")
        package = scope.get("__package__") or ""
        try:
            return getattr(import_module(path, package or None), alias.name)
        except AttributeError:
            return import_module(f"{path}.{alias.name}", package or None)
    except Exception:  # the module may be there for type checkers only, or import this one in turn
        return _NOTHING
