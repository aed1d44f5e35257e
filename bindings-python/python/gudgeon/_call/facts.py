"""The properties that `Context` and `SyncContext` share: caller, request, server and state of a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from math import isfinite
from types import GenericAlias
from typing import Any

from .._model.json import encode
from .._plan.contexts import CallContext
from ..errors import NotSupported
from ..types import ClientInfo, Principal
from .asking import answer_to


class Facts(CallContext):
    """The caller, request, server and state of a call."""

    __slots__ = ("_cache", "_call", "_turn", "server")

    def __init__(self, call: Any, app: Any) -> None:
        self._call = call
        self.server = app
        self._cache: dict[str, Any] = {}
        self._turn = 0

    def __class_getitem__(cls, item: Any) -> GenericAlias:
        return GenericAlias(cls, item)

    def __getattr__(self, name: str) -> Any:
        from .._model.other_sdks import foreign_attribute

        raise foreign_attribute("context", type(self).__name__, name)

    def _once(self, name: str, make: Callable[[], Any]) -> Any:
        turn = self._call.turn
        if turn != self._turn:  # the call goes on for another request, of which other things are true
            self._cache, self._turn = {}, turn
        if name not in self._cache:
            self._cache[name] = make()
        return self._cache[name]

    @property
    def request_id(self) -> Any:
        """The id of the JSON-RPC request, a str or an int."""
        return self._call.request_id

    @property
    def session_id(self) -> Any:
        """The legacy HTTP session's id; None from 2026-07-28 on, over stdio and in memory."""
        return self._call.session_id

    @property
    def revision(self) -> Any:
        """The revision of this call, such as "2026-07-28"."""
        return self._call.revision

    @property
    def headers(self) -> Mapping[str, str]:
        """The HTTP request's headers, by name in any case; empty over stdio and in memory.

        Repeated headers are joined by commas.
        """
        return self._once("headers", self._read_headers)  # type: ignore[no-any-return]

    @property
    def principal(self) -> Any:
        """The authenticated caller (`Principal`) as `asgi(principal=…)` returned it, or None.

        After a question it is the caller of the request that brought the answer.
        """
        return self._once("principal", self._read_principal)

    @property
    def client(self) -> Any:
        """The client's name, version and capabilities (`ClientInfo`); one that gives no name has ""."""
        return self._once("client", self._read_client)

    @property
    def client_capabilities(self) -> Any:
        """The capabilities that the client declared, as plain JSON values: `ctx.client.capabilities`."""
        return self.client.capabilities

    @property
    def meta(self) -> Any:
        """The request's `_meta`."""
        return self._once("meta", lambda: _decode(self._call.meta))

    @property
    def lifespan(self) -> Any:
        """The value of the server's `lifespan=`."""
        return self.server._lifespan.value

    @property
    def session(self) -> MutableMapping[str, Any]:
        """A mapping that lives as long as the session.

        With a `store=` its values must be JSON, at most 256 KiB together: they are read before the handler starts, and
        stored when it ends, so that the session's next request finds them in every process.

        Raises:
            NotSupported: From 2026-07-28 on, which has no sessions.
            RuntimeError: The store does not answer.
        """
        if not self._call.has_session:
            raise NotSupported(
                f"revision {self._call.revision} has no sessions, so there is no ctx.session",
                hint="give the client a handle that it passes as an argument, or keep the data in a store of your own, "
                "by ctx.principal",
            )
        return self._once("session", self._read_session)  # type: ignore[no-any-return]

    @property
    def state(self) -> dict[str, Any]:
        """A dict that lives as long as this call, for middleware and `Depends`."""
        kept: dict[str, Any] = self._call.state
        return kept

    @property
    def cancelled(self) -> bool:
        """True once the client cancelled the call or its time is up. Spec: Base Protocol › Utilities › Cancellation."""
        return bool(self._call.cancelled)

    def answer(self, question: Any) -> Any:
        """Returns the answer to a question that the handler returned before; None until it is answered.

        An answer that does not fit the type counts as none: return the question again.

        Raises:
            Declined, Cancelled: The user declined, or closed the form.
            ProtocolError: Three answers did not fit.
        """
        return answer_to(question, self._call)

    def _read_headers(self) -> Mapping[str, str]:
        from .._model.headers import Headers

        return Headers(self._call.headers)

    def _read_session(self) -> dict[str, Any]:
        values: dict[str, Any]
        values, replaces, changes = self._call.session()
        if replaces:
            values.clear()
        if changes:
            from msgspec.json import decode

            for name, value in changes:
                if value is None:
                    values.pop(name, None)
                else:
                    values[name] = decode(value)
        return values

    def _read_principal(self) -> Any:
        principal = self._call.principal
        if principal is None:
            return None
        return Principal.from_dict(_decode(principal))

    def _read_client(self) -> Any:
        info = {"name": "", "version": "", **_decode(self._call.client_info)}
        return ClientInfo.from_dict({**info, "capabilities": _decode(self._call.client_capabilities)})

    def _progress(self, progress: float, total: float | None, message: str | None) -> None:
        done, whole = float(progress), None if total is None else float(total)
        if not isfinite(done) or (whole is not None and not isfinite(whole)):
            raise ValueError(f"progress({done}, total={whole}): both must be finite numbers")
        self._call.progress(done, whole, message)

    def _log(self, level: str, data: Any, logger: str | None, extra: Mapping[str, Any] | None = None) -> None:
        if extra:
            data = {"message": data, **extra}
        self._call.log(level, logger, encode(data, "the logged value"))

    def _close_stream(self, retry: float | None) -> None:
        if self._call.session_id is None:
            raise NotSupported("close_stream is for legacy HTTP: this connection has no stream to close")
        if retry is not None and not retry >= 0:
            raise ValueError(f"close_stream: retry= is a number of seconds, not {retry!r}")
        self._call.close_stream(retry)


def _decode(text: str | None) -> dict[str, Any]:
    if not text:
        return {}
    from msgspec.json import decode

    value = decode(text)
    return value if isinstance(value, dict) else {}
