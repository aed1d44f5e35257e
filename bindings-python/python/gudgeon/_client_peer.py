"""What both clients know of the server that they are connected to."""

from __future__ import annotations

from typing import Any

from ._client_blocks import Blocks
from ._client_core import Core
from ._client_options import Options


class Peer:
    """What the server said of itself; known once the client is connected."""

    def __init__(self, target: Any, **options: Any) -> None:
        self._target = target
        self._core = Core(target, Options(options))
        self._other_end: Any = None
        self._blocks = Blocks()

    def __repr__(self) -> str:
        state = "connected" if self._core.is_open() else "not connected"
        return f"{type(self).__name__}({self._core.target_name()!r}, {state})"

    @property
    def server(self) -> Any:
        """The server's name, version, title, … (`Implementation`); one that gives no name has ""."""
        from .types import Implementation

        return Implementation.from_dict({"version": "", **self._core.said("info")})

    @property
    def revision(self) -> Any:
        """The revision that was agreed on."""
        return self._core.said("revision")

    @property
    def capabilities(self) -> Any:
        """What the server declared, as JSON says it."""
        return self._core.said("capabilities")

    @property
    def instructions(self) -> Any:
        """What the server wants the model to be told, or None."""
        return self._core.said("instructions")

    @property
    def session_id(self) -> str | None:
        """The id of the HTTP session; None where there is none, as in the modern era and on other transports."""
        self._core.said("info")
        return self._core.native.session_id()

    def set_roots(self, roots: Any) -> None:
        """Changes the roots. A legacy server is told that they changed; a modern one asks anew in each call.

        Args:
            roots: URIs, or `Root` values.

        Raises:
            NotSupported: A legacy server was told at the start that this client has none: there `roots=` comes first,
                if only as an empty list.
            ValueError: One is no URI.

        Spec: Client Features › Roots.
        """
        self._core.set_roots(roots)

    def __getattr__(self, name: str) -> Any:
        from ._foreign import foreign_attribute

        raise foreign_attribute("client", type(self).__name__, name)

    def _subscription(
        self, uris: tuple[str, ...], tools: bool, prompts: bool, resources: bool
    ) -> tuple[tuple[str, ...], dict[str, bool]]:
        return uris, {"tools": tools, "prompts": prompts, "resources": resources}
