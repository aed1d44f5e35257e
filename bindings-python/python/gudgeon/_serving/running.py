"""Serving: over stdio, at an address, over a `Transport`, or mounted in a host."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from .._model.loaded import loaded
from .._native import check_options
from .._server.lifespan import Lifespan

_HTTP_TRANSPORTS = ("http", "streamable-http", "streamable_http", "sse")


class Running:
    """The methods of `Server` that serve it."""

    _lifespan: Lifespan
    _asgi_apps: list[Any]

    def run(self, at: str = "stdio", *, transport: str | None = None, workers: int = 1, **http: Any) -> None:
        """Serves until a signal comes (SIGTERM, Ctrl-C), or, over stdio, until the client is gone.

        It then accepts nothing new, answers the calls in flight, and returns. Over stdio, stdout is used by the
        protocol: `print` writes to stderr.

        Args:
            at: "stdio", or an address: "http://127.0.0.1:8000/mcp" (serves WebSocket as well), "https://…" with `tls`,
                "http+unix:/run/shelf.sock" (the path is /mcp), or, with one message per line, "tcp://127.0.0.1:8000" or
                "unix:/run/shelf.sock". Port 0 chooses a free port.
            transport: "stdio" means the same as `at="stdio"`.
            workers: Processes that share the port, the keys, a store, and what clients before 2026-07-28 subscribed to
                and are asked, so that any of them answers each client. Default 1.
            public_url: The URL of the server as clients see it, behind a proxy; its host and origin are allowed.
            allowed_origins: Origins of web pages that may call, such as "https://example.org", "https://*.example.org"
                for all hosts below it, or "*" for all origins but "null". Default: those of this machine.
            allowed_hosts: Hosts by which clients may call, such as "example.org", "example.org:8443", "*.example.org",
                or "*" for all. Default: on a loopback address "localhost", otherwise all.
            cors: True, or the origins whose pages may read responses. Default False.
            legacy_sse: Whether the endpoints of 2024-11-05 are served at `/sse`. Default False.
            health, ready: Paths such as "/healthz" and "/readyz" that answer GET and HEAD with 200: `health` as long as
                the server runs, `ready` until the shutdown begins, and then with 503. Neither host nor credentials are
                checked there, and a server that is full answers as well. Default: none.
            metrics: A path such as "/metrics" that answers GET and HEAD with the metrics of the server in Prometheus'
                text format, to everybody who reaches it, as `health` does. Default: none.
            max_body: Bytes of a request body. Default 4 MiB.
            max_headers: Bytes of a request head. Default 64 KiB.
            sessions: For clients before 2026-07-28: "sealed" (default), whose ids each process with the same
                `request_state_keys` understands, so that they survive restarts and need no sticky routing; or "none":
                each request is served by itself, without questions to the client, subscriptions and log messages.
            max_sessions, max_streams, max_in_flight: Sessions that hold something in memory, streams of one session,
                and requests at once. Defaults 10,000, 16 and 1,000. Beyond the first, the session idle for longest
                loses what it holds; beyond the others the response is 503.
            header_timeout, idle_timeout: Seconds for a request head, and for a connection without a request, or whose
                client reads nothing. Defaults 10 and 75, more than the 60 of usual proxies.
            body_timeout: Seconds for more of a request body. Default 60.
            session_idle: Seconds after which an idle session loses what it holds in memory: subscriptions, values of
                `ctx.session`, events to send again. Default 1800.
            keep_alive: Seconds between two comments on a quiet stream. Default 15.
            event_store: Whether streams of legacy sessions can be resumed. Default True.
            tls: The paths of the certificate chain and its key. They are read again within seconds after they have
                changed; if they can't be used then, an error is logged, and those that were read before stay in use.
            trusted_proxies: The proxies in front of the server: addresses, networks such as "10.0.0.0/8", and "unix"
                for those that connect to a Unix socket. Of their requests, `Forwarded` or `X-Forwarded-For`, `-Host`
                and `-Proto` name the client, and the host and scheme that it used; of others they are ignored. Default
                none.
            proxy_protocol: Whether each connection begins with a header of the PROXY protocol, version 1 or 2, which
                names the client. It needs `trusted_proxies`; connections of others are closed. Default False.
            shutdown_grace: Seconds for calls in flight at the end, also after a client on tcp:// or unix: has closed
                its side. Default 10, over stdio 3, where it is the only option. A handler that blocks the event loop
                does not keep the process: it ends 3 seconds later, with status 1 after the client has gone, 143 after
                SIGTERM and 130 after SIGINT. A second signal ends it at once.
            drain_delay: Seconds for which the server goes on after a signal, while `ready` answers 503 and each
                response closes its connection; `shutdown_grace` begins afterwards. Default 0.

        Raises:
            TypeError, ValueError: The address or an option is not valid.
            RuntimeError: An event loop runs on this thread; call `await app.serve(…)` there.
            OSError: The address is in use or not allowed.

        Spec: Base Protocol › Transports.
        """
        at = _place(at, transport, http, "run")
        _outside_loops(at)
        if at == "stdio":
            from .stdio import run_stdio

            run_stdio(self, *_grace(http, workers))
            return
        if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
            raise ValueError(f"run(): workers= is a whole number above 0, not {workers!r}")
        from .listen import run_address

        run_address(self, _address(at, "run"), http, workers)

    async def serve(self, at: Any = "stdio", *, transport: str | None = None, **http: Any) -> None:
        """Serves like `run`, inside a running event loop; cancelling it stops the server in good order.

        Args:
            at: As for `run`, or a `Transport`, which is served until `receive()` returns None.
            transport, http: As for `run`.
        """
        from .serve import check_loop

        check_loop()
        at = _place(at, transport, http, "serve")
        if at == "stdio":
            _no_options(http)
            from .stdio import serve_stdio

            await serve_stdio(self)
        elif isinstance(at, str):
            from .listen import serve_address

            await serve_address(self, at, http)
        else:
            _no_options(http)
            from .hosting import serve_wire

            await serve_wire(self, at)

    def listen(self, at: str, **http: Any) -> AbstractAsyncContextManager[Any]:
        """Serves at an address inside an `async with` block, which gives a `Listening` with the `url`.

        Args:
            at, http: As for `run`.

        >>> import asyncio
        >>> from gudgeon import Client, Server
        >>> app = Server("shelf")
        >>> @app.tool
        ... def add(a: int, b: int) -> int:
        ...     return a + b
        >>> async def main() -> int:
        ...     async with app.listen("http://127.0.0.1:0/mcp") as here, Client(here.url) as client:
        ...         return (await client.call_tool("add", {"a": 1, "b": 2})).data
        >>> asyncio.run(main())
        3
        """
        from .listen import listening

        return listening(self, _address(at, "listen"), http)

    def asgi(
        self, *, principal: Callable[[Any], Any] | None = None, **http: Any
    ) -> Callable[..., Coroutine[Any, Any, None]]:
        """Returns this server as an ASGI app, to be served alone or mounted in Starlette, FastAPI or Django.

        `async def` handlers run on the host's event loop, `def` handlers on threads of the server. `lifespan=` is
        entered when the host sends ASGI's startup, else at the first request. It is left at ASGI's shutdown, when the
        event loop ends, on SIGTERM under uvicorn, or by `aclose()`. Hosts wait for open streams before they send the
        shutdown: set their time limit (uvicorn: `timeout_graceful_shutdown`).

        Args:
            principal: `(request) -> Principal | None`, or an `async def`: finds out who makes a request, a
                `gudgeon.auth.RequestInfo`. It is called once for each HTTP request and WebSocket, on the event loop.
                Handlers see the result as `ctx.principal`; sessions, rounds of questions and cached results belong to
                it. It may refuse a request: by `gudgeon.auth.InvalidToken` (401) or `InsufficientScope` (403). Any
                other exception is answered with 500 and logged. Default: the user that Starlette's
                `AuthenticationMiddleware` let in, by `identity` or `username` of the scope's "user" and the `scopes` of
                its "auth"; None where there is no user, or its `is_authenticated` is not True.
            http: As for `run`, without the options of connections, which belong to the host. The scope's `server` says
                whether a request arrived over loopback. Every path that ends with `health`, `ready` or `metrics`
                answers, such as "/mcp/readyz"; `ready` answers 503 until the lifespan is entered, and from `aclose()`
                on. The scope's `client` is compared with `trusted_proxies`: a host that
                has replaced it by the client's address, such as uvicorn with `forwarded_allow_ips`, needs none.

        Raises:
            TypeError, ValueError: An option is not valid, or the server has routes: the host has its own.

        Spec: Security Best Practices › Session Hijacking.

        >>> from gudgeon import Server, SyncContext
        >>> from gudgeon.types import Principal
        >>> app = Server("shelf")
        >>> @app.tool
        ... def whoami(ctx: SyncContext) -> str:
        ...     return ctx.principal.subject if ctx.principal else "nobody"
        >>> from gudgeon.auth import InvalidToken, RequestInfo
        >>> def who(request: RequestInfo) -> Principal:
        ...     if request.headers.get("authorization") != "Bearer s3cret":
        ...         raise InvalidToken("this token is not known")
        ...     return Principal("ada", scopes=["read"])
        >>> who(RequestInfo("POST", "/mcp", [("Authorization", "Bearer s3cret")]))
        Principal(subject='ada', scopes=frozenset({'read'}))
        >>> asgi = app.asgi(public_url="https://example.org/mcp", principal=who)  # uvicorn module:asgi
        """
        from .asgi import AsgiApp

        asgi = AsgiApp(self, http, principal)
        self._asgi_apps.append(asgi)
        return asgi

    async def aclose(self) -> None:
        """Stops the apps that `asgi()` returned, and leaves the lifespan. May be called again; a later request
        restarts.
        """
        for asgi in self._asgi_apps:
            await asgi.aclose()
        await self._lifespan.aclose()

    def _serve_in_memory(self, testing: Any = None) -> Any:
        """Returns what serves this server to a client of the same process.

        Args:
            testing: The `TestServing` of a test's connection. Default None.
        """
        from .in_memory import Served

        return Served(self, testing)


def _outside_loops(at: Any) -> None:
    asyncio = loaded("asyncio")
    if asyncio is None:
        return
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    address = "" if at == "stdio" else repr(at)
    raise RuntimeError(
        f"app.run({address}) blocks, and an event loop runs on this thread: write `await app.serve({address})` instead"
    )


def _place(at: Any, transport: str | None, http: dict[str, Any], call: str) -> Any:
    """Returns where to serve. Other SDKs name a transport, and give HTTP's host, port and path beside it."""
    name = at if transport is None else transport
    if isinstance(name, str) and name in _HTTP_TRANSPORTS:
        host, port, path = http.get("host", "127.0.0.1"), http.get("port", 8000), http.get("path", "/mcp")
        more = ", legacy_sse=True" if name == "sse" else ""
        given = f"transport={name!r}" if transport is not None else repr(name)
        raise ValueError(f"{call}({given}): give the address: app.{call}('http://{host}:{port}{path}'{more})")
    if transport not in (None, "stdio"):
        raise ValueError(f"{call}(transport={transport!r}): the one transport with a name is 'stdio'")
    return "stdio" if transport is not None else at


def _no_options(http: dict[str, Any], workers: int = 1) -> None:
    check_options("http", "run()", http)
    if http or workers != 1:
        raise TypeError(f"{next(iter(http), 'workers')}= is for HTTP addresses: stdio and a Transport do not take it")


def _grace(options: dict[str, Any], workers: int) -> tuple[float, ...]:
    """Returns the one option that `run()` takes over stdio, if it is given."""
    _no_options({name: value for name, value in options.items() if name != "shutdown_grace"}, workers)
    if "shutdown_grace" not in options:
        return ()
    from .http_options import checked

    checked(options, "run()")
    return (float(options["shutdown_grace"]),)


def _address(at: Any, method: str) -> str:
    if not isinstance(at, str):
        raise TypeError(
            f"{method} takes an address such as 'http://127.0.0.1:8000/mcp', not {type(at).__name__}; "
            "`await app.serve(…)` takes a Transport too"
        )
    return at
