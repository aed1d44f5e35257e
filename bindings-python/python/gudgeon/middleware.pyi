"""Ready-made middleware: `app.middleware(RateLimit(100), on="tools/call")`."""

from typing import Any

from . import Next, Request

class Timing:
    """Logs how long each request took."""

    async def __call__(self, request: Request, next: Next) -> Any: ...

class Logging:
    """Logs each request and how it ended; with `params`, what was asked as well."""

    params: bool
    def __init__(self, *, params: bool = False) -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...

class RateLimit:
    """Refuses what comes faster than so many a second, counted by principal or client."""

    per_second: float
    burst: int
    by: str
    def __init__(self, per_second: float, *, burst: int = 1, by: str = "principal") -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...

class ResponseLimit:
    """Refuses results over so many bytes of JSON."""

    max_bytes: int
    def __init__(self, max_bytes: int) -> None: ...
    async def __call__(self, request: Request, next: Next) -> Any: ...
