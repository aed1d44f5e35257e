"""`metrics` of each server, and below the path of each mount. What is counted is tested in
core/tests/sans_io/metrics.rs, a reader that stalls in core/tests/runtime/metrics.rs.
"""

import speak
from servers import NATIVE


def test_metrics_are_read_from_any_host(start, kind):
    server, path = start(metrics="/metrics"), "/metrics" if kind in NATIVE else "/mcp/metrics"
    assert speak.call_modern(server, "test_simple_text").status == 200
    with server.connect() as connection:
        answer = connection.ask("GET", path, {"Host": "10.0.0.7", "Origin": "http://evil.example.com"})
        assert (answer.status, answer.type) == (200, "text/plain")
        assert answer.header("content-type") == "text/plain; version=0.0.4; charset=utf-8"
        text = answer.body.decode()
        labels = 'method="tools/call",name="test_simple_text",outcome="ok",revision="2026-07-28"'
        assert f"gudgeon_calls_total{{{labels}}} 1\n" in text
        assert "# TYPE gudgeon_call_duration_seconds histogram\n" in text and text.endswith("\n")
        answer = connection.ask("HEAD", path, {"Host": "10.0.0.7"})
        assert (answer.status, answer.body) == (200, b"")
    with server.connect() as connection:
        answer = connection.ask("POST", path, {"Content-Type": "application/json"}, {"jsonrpc": "2.0"})
        assert (answer.status, answer.header("allow")) == (405, "GET, HEAD")
