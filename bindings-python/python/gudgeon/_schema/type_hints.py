"""Looks into annotations: unions, aliases, what stands in `Annotated`, and the texts of classes."""

from __future__ import annotations

import sys
import types
import typing
from collections.abc import Iterable
from typing import Any, Literal

from .._model.encoding import is_pydantic
from . import docstrings
from .markers import Header

UNIONS = (typing.Union, types.UnionType)


class SchemaError(TypeError):
    """A type without a JSON Schema; the message does not name the place yet."""


def description_of(annotation: Any) -> str | None:
    """Returns the text in `Annotated[int, "text"]`."""
    texts = [item for item in getattr(annotation, "__metadata__", ()) if isinstance(item, str)]
    return texts[0] if texts else None


def header_of(annotation: Any) -> str | None:
    """Returns the name in `Annotated[str, Header("Region")]`.

    Raises:
        SchemaError: There is one where the specification allows none.
    """
    for part in (annotation, *union_members(annotation)):
        for item in getattr(part, "__metadata__", ()):
            if isinstance(item, Header):
                return item.name
    for part in parts(annotation):
        for item in getattr(part, "__metadata__", ()):
            if isinstance(item, Header):
                raise SchemaError(
                    f"{item!r} is inside another type, but headers repeat whole arguments and fields of objects; "
                    "annotate one of these with it, or remove it"
                )
    return None


def unwrap(annotation: Any) -> Any:
    """Returns the type inside `Annotated`, a type alias or a NewType."""
    while True:
        if hasattr(annotation, "__metadata__"):
            annotation = annotation.__origin__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        else:
            return annotation


def unaliased(annotation: Any) -> Any:
    """Returns the annotation with type aliases replaced by their types."""
    if type(annotation).__name__ == "TypeAliasType":
        return unaliased(annotation.__value__)
    if not any(type(part).__name__ == "TypeAliasType" for part in parts(annotation)):
        return annotation
    inner = tuple(unaliased(part) for part in typing.get_args(annotation))
    if hasattr(annotation, "__metadata__"):
        special: Any = typing.Annotated
        whole = (inner[0], *annotation.__metadata__)
        return special[whole]
    if typing.get_origin(annotation) in UNIONS:
        return typing.Union[inner]  # noqa: UP007
    generic: Any = typing.get_origin(annotation)
    return generic[inner]


def union_members(annotation: Any) -> tuple[Any, ...]:
    """Returns the members of a union, or the type itself."""
    inner = unwrap(annotation)
    if typing.get_origin(inner) in UNIONS:
        return tuple(part for member in typing.get_args(inner) for part in union_members(member))
    return (annotation,)


def parts(annotation: Any) -> Iterable[Any]:
    """Yields the annotation and everything inside its brackets."""
    yield annotation
    inner = unwrap(annotation)
    if inner is not annotation:
        yield from parts(inner)
    elif typing.get_origin(inner) is not Literal:
        for part in typing.get_args(inner):
            yield from parts(part)


def uses_pydantic(annotation: Any) -> bool:
    """Returns whether pydantic has to read this type. Never imports pydantic."""
    if "pydantic" not in sys.modules:
        return False
    for part in parts(annotation):
        if is_pydantic(part) or _module(part) in ("pydantic", "pydantic_core"):
            return True
        if any(_module(type(item)) in ("pydantic", "annotated_types") for item in getattr(part, "__metadata__", ())):
            return True
    return False


def _module(item: Any) -> str:
    return str(getattr(item, "__module__", "")).partition(".")[0]


def literals(annotation: Any) -> dict[frozenset[Any], tuple[Any, ...]]:
    """Returns literal values in the order of the source, which msgspec's description loses."""
    return {
        frozenset((type(value), value) for value in typing.get_args(part)): typing.get_args(part)
        for part in parts(annotation)
        if typing.get_origin(part) is Literal
    }


def class_texts(cls: Any) -> tuple[str, dict[str, str]]:
    """Returns the text of a class's own docstring, and its fields' descriptions."""
    doc = cls.__dict__.get("__doc__") if isinstance(cls, type) else None
    name = getattr(cls, "__name__", "")
    if not isinstance(doc, str) or doc.startswith(f"{name}(") or doc == "An enumeration.":
        return "", {}
    return docstrings.parse(doc)
