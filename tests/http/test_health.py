"""`health` and `ready` of each server, and below the path of each mount. Their answers in every state are tested in
core/src/http/probes/tests.rs and core/tests/sans_io/endpoint_probes.rs.
"""

import pytest
import speak
from servers import NATIVE


@pytest.fixture
def probed(start, kind):
    """A server, and the prefix of the two paths."""
    server, prefix = start(health="/healthz", ready="/readyz"), "" if kind in NATIVE else "/mcp"
    # The first request starts a mounted server of Node, which is not ready before.
    speak.serves(server)
    return server, prefix


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_of_any_host_are_answered(probed, path):
    server, prefix = probed
    with server.connect() as connection:
        for method, body in (("GET", b"ok\n"), ("HEAD", b""), ("GET", b"ok\n")):
            answer = connection.ask(method, prefix + path, {"Host": "10.0.0.7", "Origin": "http://evil.example.com"})
            assert (answer.status, answer.type, answer.body) == (200, "text/plain", body)
            assert answer.header("cache-control") == "no-store"
    with server.connect() as connection:
        answer = connection.ask("POST", prefix + path, {"Content-Type": "application/json"}, {"jsonrpc": "2.0"})
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
    assert speak.call_modern(server, "test_simple_text").status == 200
