"""Serves the Python fixture server: over stdio, by its own HTTP server, or mounted in an ASGI server."""

from __future__ import annotations

import argparse
import contextlib
import signal
import sys
from typing import Any

from gudgeon import Server

SECONDS = 10  # for pending calls to finish at shutdown


def serve(app: Server, given: argparse.Namespace) -> None:
    http = {"legacy_sse": True, "shutdown_grace": SECONDS, **given.options}
    if given.stdio:
        app.run()
    elif given.mount == "asgi":
        serve_asgi(app, given.http, http)
    else:
        app.run(f"http://{given.http}/mcp", **http)


def serve_asgi(app: Server, address: str, http: dict[str, Any]) -> None:
    import uvicorn

    class Announced(uvicorn.Server):
        async def startup(self, sockets: object = None) -> None:
            await super().startup()
            host, port = self.servers[0].sockets[0].getsockname()[:2]
            announce(f"http://{f'[{host}]' if ':' in host else host}:{port}/mcp")

    host, _, port = address.rpartition(":")
    config = uvicorn.Config(
        app.asgi(**http),
        host=host.strip("[]"),
        port=int(port),
        log_level="warning",
        timeout_graceful_shutdown=SECONDS,
    )
    # uvicorn shuts down gracefully and then raises the signal again for the previous handler.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    with contextlib.suppress(KeyboardInterrupt):
        Announced(config).run()


def announce(url: str) -> None:
    print(url, file=sys.stderr, flush=True)
