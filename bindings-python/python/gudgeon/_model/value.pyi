from collections.abc import Mapping
from typing import Any

from typing_extensions import Self

from .encoding import JsonValue

class Value(JsonValue):
    _fields: Mapping[str, Any]
    def to_dict(self) -> dict[str, Any]: ...
    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self: ...

def camel(name: str) -> str: ...
def plain(value: Any) -> Any: ...
