"""Reads a function's signature: parameters of the caller, the context, dependencies and the return type."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, Optional

from .._schema.annotations import Unresolved, place, raw_annotations, resolve, target
from .._schema.markers import Depends, Header
from .._schema.type_hints import unaliased, union_members, unwrap
from .contexts import CallContext, context_class
from .field import read_field
from .parameter import MISSING, Parameter
from .questions import check_questions

_VARIADIC: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}


class Signature:
    """A function's parameters and return annotation, resolved."""

    __slots__ = ("fn", "is_async", "is_async_generator", "is_generator", "parameters", "place", "returns")

    def __init__(self, fn: Callable[..., Any], *, handler: bool = True) -> None:
        if isinstance(fn, classmethod):
            raise TypeError(f"{place(fn.__func__)} is a classmethod: register it after the class, as Class.method")
        self.fn = fn
        self.place = place(fn)
        inner = target(fn)
        self.is_async = inspect.iscoroutinefunction(inner)
        self.is_generator = inspect.isgeneratorfunction(inner)
        self.is_async_generator = inspect.isasyncgenfunction(inner)
        if handler and (self.is_generator or self.is_async_generator):
            raise TypeError(f"{self.place} is a generator: return a list instead of yielding")
        raw = raw_annotations(fn)
        try:
            # A partial takes fewer parameters than the function that it may claim to wrap.
            signature = inspect.signature(fn, follow_wrapped=not isinstance(fn, functools.partial))
        except (TypeError, ValueError):
            raise TypeError(f"{self.place} has no signature to read: wrap it in a def with type hints") from None
        self.parameters = []
        for number, given in enumerate(signature.parameters.values()):
            annotation = raw.get(given.name, given.annotation)
            if number == 0 and given.name in ("self", "cls") and annotation is MISSING and _in_class(inner):
                method = inner.__qualname__.rpartition("<locals>.")[2]
                owner, _, name = method.rpartition(".")
                raise TypeError(
                    f"{self.place} is a method without its object: register it on an object instead, "
                    f"app.tool({owner.rpartition('.')[2].lower()}.{name}), or make it a @staticmethod"
                )
            self.parameters.append(self._parameter(given, annotation))
        self._check_names()
        returns = raw.get("return", MISSING)
        self.returns = (
            returns if returns is MISSING else self._resolve(returns, f"the return annotation of {self.place}")
        )
        check_questions(self.returns, f"the return annotation of {self.place}")

    def _check_names(self) -> None:
        found: dict[str, str] = {}
        for parameter in self.parameters:
            other = found.setdefault(parameter.wire, parameter.name)
            if other != parameter.name:
                raise TypeError(
                    f"parameters {other!r} and {parameter.name!r} of {self.place} are both the argument "
                    f"{parameter.wire!r}: give one of them another alias"
                )

    def _resolve(self, annotation: Any, what: str) -> Any:
        try:
            return unaliased(resolve(annotation, self.fn, CallContext))
        except RecursionError:
            raise TypeError(f"{what} is an alias of itself: give its inner part as Any") from None
        except Unresolved as error:
            raise TypeError(
                f"{what}, {annotation!r}, can't be resolved: {error}; "
                "import or define it where the function is registered"
            ) from None

    def _parameter(self, given: inspect.Parameter, annotation: Any) -> Parameter:
        stars = _VARIADIC.get(given.kind)
        if stars:
            raise TypeError(
                f"parameter '{stars}{given.name}' of {self.place} can't be described to a caller: "
                f"name each parameter, or take one {given.name}: {'list[str]' if stars == '*' else 'dict[str, Any]'}"
            )
        where = f"parameter {given.name!r} of {self.place}"
        if given.kind is inspect.Parameter.POSITIONAL_ONLY and given.name.isidentifier() and not _is_builtin(self.fn):
            raise TypeError(
                f"{where} is positional-only, but arguments come by name: take the '/' out of the signature"
            )
        if isinstance(given.default, Depends):
            raise TypeError(
                f"{where}: Depends belongs in Annotated; write {given.name}: Annotated[…, {given.default!r}]"
            )
        if annotation is MISSING:
            if given.name in ("ctx", "context") and given.default is MISSING:
                raise TypeError(f"{where} has no type annotation: write {given.name}: {self._context_name()}")
            raise TypeError(f"{where} has no type annotation: write e.g. {given.name}: {_example(given.default)}")
        resolved = self._resolve(annotation, where)
        if given.default is None:
            resolved = _or_none(resolved)
        parameter = Parameter(given.name, resolved, given.kind is inspect.Parameter.KEYWORD_ONLY)
        parameter.default = given.default
        read_field(parameter, where)
        self._read(parameter)
        if parameter.context is not None:
            self._check_context(parameter, where)
        if parameter.depends is not None:
            check_questions(resolved, where)
        return parameter

    def _read(self, parameter: Parameter) -> None:
        for item in getattr(parameter.annotation, "__metadata__", ()):
            if isinstance(item, Depends):
                parameter.depends = item
            elif item is Depends or item is Header:
                raise TypeError(
                    f"parameter {parameter.name!r} of {self.place}: {item.__name__} needs its argument, "
                    f"{item.__name__}({'get_it' if item is Depends else chr(34) + 'Name' + chr(34)})"
                )
        if parameter.depends is None:
            for member in union_members(parameter.annotation):
                parameter.context = context_class(unwrap(member)) or parameter.context

    def _check_context(self, parameter: Parameter, where: str) -> None:
        is_async = self.is_async or self.is_async_generator
        if parameter.context is not None and parameter.context._is_async != is_async:
            handler, right = "an async def" if is_async else "a def", self._context_name()
            raise TypeError(
                f"{where} is a {parameter.context.__name__}, but {handler} takes {right}: "
                f"write {parameter.name}: {right}"
            )

    def _context_name(self) -> str:
        return "Context" if self.is_async or self.is_async_generator else "SyncContext"


def _or_none(annotation: Any) -> Any:
    """Returns `int | None` for the parameter `x: int = None`."""
    if unwrap(annotation) in (Any, object):
        return annotation
    optional: Any = Optional
    special: Any = Annotated
    ours = tuple(item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, (str, Header, Depends)))
    whole = (optional[annotation], *ours)
    return special[whole] if ours else whole[0]


def _in_class(inner: Any) -> bool:
    return "." in str(getattr(inner, "__qualname__", "")).rpartition("<locals>.")[2]


def _is_builtin(fn: Any) -> bool:
    return not hasattr(target(fn), "__code__")


def _example(default: Any) -> str:
    if default is MISSING or default is None or not isinstance(default, (str, int, float, bool, list, dict)):
        return "str"
    return type(default).__name__
