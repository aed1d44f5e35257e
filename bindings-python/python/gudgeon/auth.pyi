from typing import Any, TypeAlias

Auth: TypeAlias = Any
ClientAuth: TypeAlias = Any
