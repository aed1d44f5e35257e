"""Who may call, and as whom."""

from typing import Any, TypeAlias

Auth: TypeAlias = Any
ClientAuth: TypeAlias = Any
