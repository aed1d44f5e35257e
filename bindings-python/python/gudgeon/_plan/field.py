"""Reads pydantic's `Field` at a parameter: its default, and the name that callers use for the argument."""

from __future__ import annotations

import copy
from typing import Annotated, Any

from .._model.loaded import loaded
from .parameter import MISSING, Parameter

_NAMES = ("alias", "alias_priority", "serialization_alias", "validation_alias")


def read_field(parameter: Parameter, where: str) -> None:
    """Reads `x: int = Field(3, ge=1)` as `x: Annotated[int, Field(ge=1)] = 3`, and takes the alias out of each Field:
    it is the argument's name, which pydantic does not see because it reads the value alone.
    """
    module = loaded("pydantic.fields")
    if module is None:
        return
    if isinstance(parameter.default, module.FieldInfo):
        _take_default(parameter, parameter.default, where)
    kept = []
    for item in getattr(parameter.annotation, "__metadata__", ()):
        if isinstance(item, module.FieldInfo):
            parameter.wire = _alias(item, where) or parameter.wire
            item = _without_names(item)
        if item is not None:
            kept.append(item)
    if kept != list(getattr(parameter.annotation, "__metadata__", ())):
        inner = parameter.annotation.__origin__
        special: Any = Annotated
        whole = (inner, *kept)
        parameter.annotation = special[whole] if kept else inner


def _take_default(parameter: Parameter, field: Any, where: str) -> None:
    from pydantic_core import PydanticUndefined

    parameter.wire = _alias(field, where) or parameter.wire
    parameter.factory = field.default_factory
    is_required = field.default is PydanticUndefined or field.default is Ellipsis
    parameter.default = MISSING if is_required else field.default
    texts = (field.description,) if field.description else ()
    annotated: Any = Annotated
    whole = (parameter.annotation, *texts, *field.metadata)
    parameter.annotation = annotated[whole]


def _alias(field: Any, where: str) -> str | None:
    """Returns the name that pydantic reads a field of a model by. Of several, the first is the one that is listed."""
    given = field.validation_alias if field.validation_alias is not None else field.alias
    choices = getattr(given, "choices", None)
    if choices is not None:
        given = next((choice for choice in choices if isinstance(choice, str)), choices[0])
    if given is None or isinstance(given, str):
        return given
    raise TypeError(f"{where}: {given!r} is a path, but an argument has one name: write Field(alias='name')")


def _without_names(field: Any) -> Any:
    """Returns the Field without aliases; None if it says nothing else."""
    if all(getattr(field, name, None) is None for name in _NAMES):
        return field
    rest = copy.copy(field)
    for name in _NAMES:
        setattr(rest, name, None)
    set_here = getattr(field, "_attributes_set", {})
    rest._attributes_set = {name: value for name, value in set_here.items() if name not in _NAMES}
    return rest if rest._attributes_set.keys() - {"annotation"} or rest.metadata else None
