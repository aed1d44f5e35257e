"""Options and addresses of servers: invalid ones are named, with the fix."""

import asyncio
import socket
from typing import Any

import pytest

from gudgeon import Server

ANYWHERE = "http://127.0.0.1:0/mcp"


@pytest.mark.parametrize(
    "options, error",
    [
        ({"max_bodi": 1}, TypeError),
        ({"max_body": 0}, ValueError),
        ({"max_sessions": True}, ValueError),
        ({"max_headers": "64k"}, ValueError),
        ({"keep_alive": 0}, ValueError),
        ({"session_idle": -1}, ValueError),
        ({"shutdown_grace": float("nan")}, ValueError),
        ({"drain_delay": -1}, ValueError),
        ({"legacy_sse": "yes"}, TypeError),
        ({"health": True}, TypeError),
        ({"health": "healthz"}, ValueError),
        ({"health": "/"}, ValueError),
        ({"ready": "/readyz?a"}, ValueError),
        ({"ready": "/sse"}, ValueError),
        ({"ready": "/.well-known/oauth-protected-resource"}, ValueError),
        ({"ready": "/mcp"}, ValueError),
        ({"ready": "/up/", "health": "/up"}, ValueError),
        ({"metrics": True}, TypeError),
        ({"metrics": "metrics"}, ValueError),
        ({"metrics": "/up", "health": "/up"}, ValueError),
        ({"allowed_origins": "https://example.org"}, TypeError),
        ({"allowed_hosts": [1]}, TypeError),
        ({"allowed_hosts": ["http://example.org"]}, ValueError),
        ({"allowed_origins": ["example.org"]}, ValueError),
        ({"cors": "https://example.org"}, TypeError),
        ({"public_url": "example.org"}, ValueError),
        ({"tls": "cert.pem"}, TypeError),
        ({"body_timeout": 0}, ValueError),
        ({"trusted_proxies": "10.0.0.1"}, TypeError),
        ({"trusted_proxies": ["proxy.example"]}, ValueError),
        ({"trusted_proxies": ["10.0.0.1/8"]}, ValueError),
        ({"proxy_protocol": "v2"}, TypeError),
        ({"proxy_protocol": True}, ValueError),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_an_invalid_option_is_named(options: dict[str, Any], error: type[Exception]) -> None:
    app = Server("shelf")
    with pytest.raises(error, match=next(iter(options))):
        app.run(ANYWHERE, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"allowed_hosts": ["http://example.org"]},
        {"allowed_origins": ["example.org"]},
        {"cors": ["example.org"]},
        {"public_url": "https://[example.org"},
        {"health": "healthz"},
        {"trusted_proxies": ["proxy.example"]},
    ],
    ids=lambda options: next(iter(options)),
)
def test_an_option_that_can_match_nothing_is_named_when_the_asgi_app_is_made(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Server("shelf").asgi(**options)


@pytest.mark.parametrize(
    "option", ["tls", "max_headers", "header_timeout", "idle_timeout", "proxy_protocol", "drain_delay"]
)
def test_what_is_about_connections_is_the_hosts(option: str) -> None:
    with pytest.raises(TypeError, match=f"{option}.*ASGI server"):
        Server("shelf").asgi(**{option: 1})


@pytest.mark.parametrize(
    "at", ["127.0.0.1:8000", "ftp://127.0.0.1:1", "ws://127.0.0.1:1/mcp", "tcp://127.0.0.1", "http://"]
)
def test_an_invalid_address_is_shown_with_the_fix(at: str) -> None:
    with pytest.raises(ValueError, match="address to listen at.*(write|names|http)"):
        Server("shelf").run(at)


def test_stdio_takes_no_options() -> None:
    with pytest.raises(TypeError, match="max_body= is for HTTP"):
        Server("shelf").run(max_body=1)


@pytest.mark.parametrize("workers", [0, 1.5, True])
def test_a_number_of_workers_that_is_none(workers: Any) -> None:
    with pytest.raises(ValueError, match="workers="):
        Server("shelf").run(ANYWHERE, workers=workers)


@pytest.mark.io
@pytest.mark.parametrize("workers", [1, 2])
def test_a_port_that_is_taken(workers: int) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
        with pytest.raises(OSError, match="listen"):
            Server("shelf").run(url, workers=workers)


def test_an_invalid_transport_is_reported_with_what_it_lacks() -> None:
    with pytest.raises(TypeError, match=r"int has no receive\(\)"):
        asyncio.run(Server("shelf").serve(7))


@pytest.mark.io
async def test_who_can_be_reached_from_elsewhere_is_warned_once(capsys: Any, caplog: Any) -> None:
    async with Server("shelf").listen("http://0.0.0.0:0/mcp"):
        pass
    said = capsys.readouterr().err + caplog.text
    assert said.count("can be reached from other machines") == 1
