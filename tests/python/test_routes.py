"""Routes: what functions get and return, and which registrations are refused. tests/http has requests over sockets."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from gudgeon import HttpRequest, HttpResponse, Principal, Server, ToolError, ask
from gudgeon.auth import ApiKeys

ANYWHERE = "http://127.0.0.1:0/mcp"


def asked(app: Server, *requests: Request | str) -> list[tuple[int, Any, bytes]]:
    """Serves the app, and returns the status, the headers and the body of each response. Hosts are replaced."""

    def send(url: str, request: Request | str) -> tuple[int, Any, bytes]:
        if isinstance(request, str):
            request = Request(f"http://localhost{request}")
        request = Request(
            url + request.selector, request.data, dict(request.header_items()), method=request.get_method()
        )
        try:
            with urlopen(request, timeout=60) as response:
                return response.status, response.headers, response.read()
        except HTTPError as error:
            return error.code, error.headers, error.read()

    async def main() -> list[tuple[int, Any, bytes]]:
        async with app.listen(ANYWHERE) as here:
            url = here.url.removesuffix("/mcp")
            return [await asyncio.to_thread(send, url, request) for request in requests]

    return asyncio.run(main())


def returning(value: Any) -> Server:
    app = Server("t")
    app.route("/it")(lambda: value)
    return app


@dataclass
class Book:
    title: str


@pytest.mark.io
@pytest.mark.parametrize(
    "value, status, media_type, body",
    [
        ("text", 200, "text/plain; charset=utf-8", b"text"),
        (b"\xff\x00", 200, "application/octet-stream", b"\xff\x00"),
        ({"a": [1, None]}, 200, "application/json", b'{"a":[1,null]}'),
        (["a"], 200, "application/json", b'["a"]'),
        (Book("Dune"), 200, "application/json", b'{"title":"Dune"}'),
        (None, 204, None, b""),
        (HttpResponse(), 200, None, b""),
        (HttpResponse("<p>", content_type="text/html"), 200, "text/html", b"<p>"),
        (HttpResponse({"a": 1}, 201), 201, "application/json", b'{"a":1}'),
        (HttpResponse(b"\xff", 203), 203, "application/octet-stream", b"\xff"),
        (HttpResponse("a,b", headers={"Content-Type": "text/csv"}), 200, "text/csv", b"a,b"),
        (HttpResponse(None), 200, "application/json", b"null"),
    ],
)
def test_each_result_is_a_response(value: Any, status: int, media_type: str | None, body: bytes) -> None:
    [(got, headers, content)] = asked(returning(value), "/it")
    assert (got, headers["content-type"], content) == (status, media_type, body)


@pytest.mark.io
def test_headers_that_are_repeated_stay_apart() -> None:
    response = HttpResponse("", headers=[("Set-Cookie", "a=1"), ("Set-Cookie", "b=2"), ("Content-Length", "9")])
    [(_, headers, _)] = asked(returning(response), "/it")
    assert (headers.get_all("set-cookie"), headers["content-length"]) == (["a=1", "b=2"], "0")


@pytest.mark.io
@pytest.mark.parametrize("is_async", [False, True])
def test_a_function_gets_the_request(is_async: bool) -> None:
    app, seen, threads = Server("t"), [], []

    def hook(request: HttpRequest) -> None:
        seen.append(request)
        threads.append(threading.current_thread())

    async def async_hook(request: HttpRequest) -> None:
        hook(request)

    app.route("/hooks", methods=["POST", "PUT"])(async_hook if is_async else hook)
    headers = {"X-Two": "1", "Content-Type": "application/json"}
    request = Request("http://localhost/hooks?a=%20b", b'{"shelf": 1}', headers, method="PUT")
    [(status, _, _)] = asked(app, request)
    [got] = seen
    assert status == 204
    assert (got.method, got.path, got.query, got.remote) == ("PUT", "/hooks", "a=%20b", "127.0.0.1")
    assert got.url.startswith("http://127.0.0.1:") and got.url.endswith("/hooks?a=%20b")
    assert (got.headers["X-TWO"], got.headers.get("x-three")) == ("1", None)
    assert (got.body, got.text, got.json()) == (b'{"shelf": 1}', '{"shelf": 1}', {"shelf": 1})
    assert got.principal is None


@pytest.mark.io
def test_only_routes_with_auth_need_credentials() -> None:
    app = Server("t", auth=ApiKeys({"k3y": Principal("reader")}))

    @app.route("/me", auth=True)
    def me(request: HttpRequest) -> str:
        return request.principal.subject if request.principal else "nobody"

    app.route("/open")(lambda request: str(request.principal))
    key = {"Authorization": "Bearer k3y"}
    refused, let_in, open_to_all = asked(
        app, "/me", Request("http://localhost/me", headers=key), Request("http://localhost/open", headers=key)
    )
    assert (refused[0], refused[1]["www-authenticate"]) == (401, "Bearer")
    assert (let_in[0], let_in[2], open_to_all[2]) == (200, b"reader", b"None")


@pytest.mark.io
@pytest.mark.parametrize(
    "raised",
    [LookupError("a secret"), ToolError("a secret"), SystemExit("a secret")],
    ids=lambda one: type(one).__name__,
)
def test_an_exception_is_500(raised: BaseException, capfd: pytest.CaptureFixture[str]) -> None:
    app = Server("t", expose_errors=(LookupError,))

    @app.route("/it")
    def it() -> None:
        raise raised

    [(status, _, body)] = asked(app, "/it")
    assert status == 500 and body.startswith(b"the server failed to answer (reference ")
    assert b"secret" not in body


@pytest.mark.io
@pytest.mark.parametrize(
    "value, problem",
    [
        (HttpResponse(status=99), "99 is not the status of a response"),
        (HttpResponse(headers={"a b": "c"}), '"a b" is not the name of a header'),
        (HttpResponse(headers={"a": "b\r\nc: d"}), 'the header "a" has a value'),
        (object(), "can't be"),
        (ask.elicit("Well?", bool), "returned a question"),
    ],
)
def test_a_result_that_is_no_response_is_500(
    value: Any, problem: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    [(status, _, _)] = asked(returning(value), "/it")
    assert status == 500
    assert problem in caplog.text + capfd.readouterr().err


def test_a_mounted_server_has_its_routes() -> None:
    house, shelf = Server("house"), Server("shelf")
    shelf.route("/before")(lambda: "before")
    house.mount("shelf", shelf)
    shelf.route("/after")(lambda: "after")
    with pytest.raises(ValueError, match='route GET "/after" is already registered'):
        house.route("/after")(lambda: "again")
    other = Server("other")
    other.route("/before")(lambda: "taken")
    with pytest.raises(ValueError, match='route GET "/before" is already registered'):
        other.mount("shelf", shelf)


@pytest.mark.parametrize(
    "path, methods, problem",
    [
        ("hooks", ["GET"], 'route "hooks": it is not a path as in URLs; write one that begins with "/"'),
        ("/hooks/{id}", ["GET"], "a route has one exact path, without variables"),
        ("/hooks", ["post"], '"post" is not a method of routes; write one of "GET", "POST"'),
        ("/hooks", ["GET", "GET"], "is already registered"),
    ],
)
def test_routes_that_can_not_work_are_refused(path: str, methods: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem.replace("{", "\\{")):
        Server("t").route(path, methods=methods)(lambda: None)


def takes_two(request: HttpRequest, other: int) -> None: ...


def yields() -> Any:
    yield "part"


@pytest.mark.parametrize(
    "register, problem",
    [
        (lambda app: app.route(takes_two), "a route needs its path"),
        (lambda app: app.route("/a", methods="GET"), "write \\['GET'\\]"),
        (lambda app: app.route("/a", methods=[]), "methods= is empty"),
        (lambda app: app.route("/a")(takes_two), "but is called with \\(request\\)"),
        (lambda app: app.route("/a")(yields), "is a generator"),
        (lambda app: app.route("/a")("text"), "the handler is a function, not str"),
    ],
)
def test_wrong_registrations_are_refused(register: Callable[[Any], Any], problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        register(Server("t"))


def test_a_server_with_routes_is_not_mounted_in_a_host() -> None:
    with pytest.raises(ValueError, match='route "/it": routes are served at addresses of the server\'s own only'):
        returning(None).asgi()


@pytest.mark.io
def test_a_server_that_is_served_gets_no_route() -> None:
    app = Server("t")

    async def main() -> None:
        async with app.listen(ANYWHERE):
            with pytest.raises(ValueError, match='route "/late": the server is being served already'):
                app.route("/late")(lambda: None)

    asyncio.run(main())


@pytest.mark.io
@pytest.mark.parametrize("path", ["/mcp", "/sse", "/healthz", "/.well-known/oauth-protected-resource"])
def test_paths_with_another_use_are_refused_when_served(path: str) -> None:
    app = Server("t")
    app.route(path)(lambda: None)

    async def main() -> None:
        async with app.listen(ANYWHERE, health="/healthz"):
            pass

    with pytest.raises(ValueError, match=f'route "{path}": this is a path of '):
        asyncio.run(main())


def test_requests_are_made_for_tests() -> None:
    request = HttpRequest("POST", "http://localhost/hooks?a=1", headers={"X-Name": "b"}, body=json.dumps([1]).encode())
    assert (request.path, request.query, request.headers["x-name"], request.json()) == ("/hooks", "a=1", "b", [1])
    with pytest.raises(TypeError, match="status= is a number"):
        HttpResponse("", "200")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="headers= has names and values"):
        HttpResponse("", headers={"a": 1})  # type: ignore[dict-item]
