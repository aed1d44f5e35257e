"""A parameter of a handler."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .._schema.markers import Depends
    from .contexts import CallContext

MISSING: Any = inspect.Parameter.empty


class Parameter:
    """A parameter, passed by the caller, by the server (context) or by a dependency's provider.

    Attributes:
        wire: the name of the argument that the caller passes
    """

    __slots__ = ("annotation", "context", "default", "depends", "factory", "keyword_only", "name", "wire")

    def __init__(self, name: str, annotation: Any, keyword_only: bool) -> None:
        self.name = self.wire = name
        self.annotation = annotation
        self.keyword_only = keyword_only
        self.default: Any = MISSING
        self.factory: Callable[[], Any] | None = None
        self.context: type[CallContext] | None = None
        self.depends: Depends | None = None

    @property
    def required(self) -> bool:
        return self.default is MISSING and self.factory is None
