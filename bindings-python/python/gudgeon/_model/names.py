"""Names for annotations only; the stub of the package defines them."""

from typing import Any, Literal

CallOptions = ClientOptions = HttpOptions = PromptOptions = ResourceOptions = ServerOptions = ToolOptions = dict
LogLevel = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]
Revision = Literal["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
Target = Transport = Any


class Listening:
    """A listening server: its `url`, and `close()`."""
