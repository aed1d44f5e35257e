"""Routes of each server with an address of its own: requests and responses pass whole, and clients that leave are
noticed. Which requests reach a route is tested in core/tests/sans_io/endpoint_routes.rs.
"""

import pytest
import speak
from servers import NATIVE, eventually

pytestmark = pytest.mark.only(*NATIVE)

BODIES = {
    "nothing": b"",
    "text": '{"shelf": "Bücher"}\r\n'.encode(),
    "no text": bytes(range(256)),
    "much": b"x" * 1_000_000,
    "many bytes that are not text": b"\xff" * 1_000_000,
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_request_and_its_response_pass_whole(server, body):
    with server.connect() as connection:
        for _ in range(2):
            answer = connection.ask(
                "POST", "/hooks?a=%20b&c", {"X-Signature": "ab", "Content-Type": "text/plain"}, body
            )
            assert (answer.status, answer.header("x-asked")) == (201, "POST /hooks?a=%20b&c")
            assert (answer.header("x-signature"), answer.body) == ("ab", body)


def test_a_status_page_has_head_and_its_methods(server):
    with server.connect() as connection:
        for method, body in (("GET", b"fine"), ("HEAD", b""), ("GET", b"fine")):
            answer = connection.ask(method, "/status")
            assert (answer.status, answer.type, answer.body) == (200, "text/plain", body)
            assert answer.header("content-length") == "4"
        for method, status in (("OPTIONS", 204), ("POST", 405)):
            answer = connection.ask(method, "/status", None, b"" if method == "POST" else None)
            assert (answer.status, answer.header("allow")) == (status, "GET, HEAD, OPTIONS")


def test_pages_of_other_origins_and_hosts_are_refused(server):
    for header, status in (({"Origin": "http://evil.example.com"}, 403), ({"Host": "evil.example.com"}, 421)):
        with server.connect() as connection:
            assert connection.ask("POST", "/hooks", header, b"").status == status


def test_a_body_has_the_limit_of_the_endpoint(start):
    with start(max_body=1000).connect() as connection:
        assert connection.ask("POST", "/hooks", None, b"x" * 1000).status == 201
        assert connection.ask("POST", "/hooks", None, b"x" * 1001).status == 413


def test_a_handler_that_fails_is_500_and_a_line_in_the_log(start):
    server = start()
    with server.connect() as connection:
        answer = connection.ask("GET", "/broken")
    assert (answer.status, answer.type) == (500, "text/plain")
    reference = answer.body.decode().partition("(reference ")[2].rstrip(")\n")
    assert reference and b"secret" not in answer.body
    assert eventually(lambda: f'route GET "/broken" failed (reference {reference})' in server.said())
    assert eventually(lambda: "a secret" in server.said())


def test_leaving_before_the_response_cancels_the_handler(server):
    started, cancelled = speak.started_so_far(server), speak.cancelled_so_far(server)
    with server.connect() as connection:
        connection.request("POST", "/slow", None, b"")
        assert eventually(lambda: speak.started_so_far(server) == started + 1)
    assert eventually(lambda: speak.cancelled_so_far(server) == cancelled + 1)
