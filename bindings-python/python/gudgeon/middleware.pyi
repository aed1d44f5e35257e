from typing import Any

from . import Next as Next, Request as Request

__all__ = ["Logging", "Next", "RateLimit", "Request", "ResponseLimit", "Timing"]

class Timing:
    async def __call__(self, request: Request, next: Next) -> Any: ...

class Logging:
    params: bool
    def __init__(self, *, params: bool = False) -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...

class RateLimit:
    per_second: float
    burst: int
    by: str
    def __init__(self, per_second: float, *, burst: int = 1, by: str = "principal") -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...

class ResponseLimit:
    max_bytes: int
    def __init__(self, max_bytes: int) -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...
