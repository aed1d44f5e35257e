"""The properties that `Client` and `SyncClient` share."""

from __future__ import annotations

from typing import Any

from ..types import ServerInfo
from .blocks import Blocks
from .core import Core
from .options import Options


class Peer:
    """The server's declarations, available once the client is connected."""

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
        """The server's name, version, title, … and capabilities (`ServerInfo`); one that gives no name has ""."""
        info = self._core.declared("info")
        return ServerInfo.from_dict({"version": "", **info, "capabilities": self.capabilities})

    @property
    def revision(self) -> Any:
        """The negotiated revision."""
        return self._core.declared("revision")

    @property
    def capabilities(self) -> Any:
        """The server's capabilities, as plain JSON values: `client.server.capabilities`."""
        return self._core.declared("capabilities")

    @property
    def instructions(self) -> Any:
        """The server's instructions for the model, or None."""
        return self._core.declared("instructions")

    @property
    def session_id(self) -> str | None:
        """The id of the HTTP session; None without one, as from 2026-07-28 on and on other transports."""
        self._core.declared("info")
        return self._core.native.session_id()

    def set_roots(self, roots: Any) -> None:
        """Replaces the roots. Servers before 2026-07-28 are notified; later ones ask for them in each call.

        Args:
            roots: file:// URIs, absolute paths, or `Root` values.

        Raises:
            NotSupported: The server speaks a revision before 2026-07-28 and the client was made without `roots=`; an
                empty list is enough.
            ValueError: A root is neither a file:// URI nor an absolute path.

        Spec: Client Features › Roots.
        """
        self._core.set_roots(roots)

    def __getattr__(self, name: str) -> Any:
        from .._model.other_sdks import foreign_attribute

        raise foreign_attribute("client", type(self).__name__, name)

    def _subscription(
        self, uris: tuple[str, ...], tools: bool, prompts: bool, resources: bool
    ) -> tuple[tuple[str, ...], dict[str, bool]]:
        return uris, {"tools": tools, "prompts": prompts, "resources": resources}
