"""Who may call, and as whom."""

from typing import Any

Auth = ClientAuth = Any
