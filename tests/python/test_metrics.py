"""Metrics through OpenTelemetry, and those of several workers. Names and rules are tested in
core/tests/sans_io/metrics.rs.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import textwrap
import urllib.request
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from eventually import eventually
from gudgeon import McpError, Server, SyncClient
from gudgeon.testing import connect_sync

READER = InMemoryMetricReader()


@pytest.fixture(autouse=True, scope="module")
def provider() -> None:
    metrics.set_meter_provider(MeterProvider([READER]))


def collected(server: str) -> dict[str, list[Any]]:
    """The data points of each metric that are about this server."""
    data = READER.get_metrics_data()
    assert data is not None
    scopes = [scope for resource in data.resource_metrics for scope in resource.scope_metrics]
    own = [metric for scope in scopes if scope.scope.name == "gudgeon" for metric in scope.metrics]
    of_server = lambda point: point.attributes["gudgeon.server"] == server  # noqa: E731
    return {metric.name: list(filter(of_server, metric.data.data_points)) for metric in own}


def shelf(name: str) -> Server[Any]:
    app = Server(name)

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool
    def fail() -> None:
        raise ValueError("no")

    return app


def test_calls_are_a_histogram_of_the_semantic_conventions() -> None:
    with connect_sync(shelf("counted")) as client:
        for _ in range(3):
            client.call_tool("add", {"a": 1, "b": 2})
        client.call_tool("fail", raise_on_error=False)
        with pytest.raises(McpError, match="Unknown tool"):
            client.call_tool("nil")
    for _ in range(2):  # what was recorded is not recorded again
        points = collected("counted")["mcp.server.operation.duration"]
        calls = [point for point in points if point.attributes["mcp.method.name"] == "tools/call"]
        found = {(call.attributes.get("gen_ai.tool.name"), call.attributes.get("error.type")): call for call in calls}
        assert {key: call.count for key, call in found.items()} == {
            ("add", None): 3,
            ("fail", "tool_error"): 1,
            (None, "invalid"): 1,
        }
    add = found["add", None]
    assert add.attributes["gen_ai.operation.name"] == "execute_tool"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", add.attributes["mcp.protocol.version"])
    assert 0 < add.sum < 60
    assert add.explicit_bounds[:3] == (0.01, 0.02, 0.05)


def test_amounts_are_gauges() -> None:
    app = shelf("gauged")
    with connect_sync(app):
        observed = collected("gauged")
        (point,) = observed["gudgeon.in_flight"]
        assert point.value == 0
        (point,) = observed["gudgeon.in_flight.limit"]
        assert point.value >= 1_000
        assert {point.attributes["gudgeon.purpose"] for point in observed["gudgeon.held"]} == {
            "requests",
            "suspended",
            "input",
            "unread",
        }


@pytest.mark.io
def test_without_a_meter_provider_nothing_is_imported() -> None:
    program = """
        import sys
        from gudgeon import Server
        from gudgeon.testing import connect_sync
        with connect_sync(Server("a")):
            pass
        imported = [name for name in sys.modules if name.startswith("opentelemetry")]
        print(imported, "gudgeon._serving.telemetry" in sys.modules)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["[]", "False"]


WORKERS = """
    import os
    from gudgeon import Server
    app = Server("shelf")
    @app.tool
    def pid() -> int:
        return os.getpid()
    app.run("http://127.0.0.1:0/mcp", workers=3, metrics="/metrics")
"""


def scraped(url: str) -> dict[str, float]:
    """Returns the samples that one of the workers answers with."""
    with urllib.request.urlopen(url.replace("/mcp", "/metrics"), timeout=60) as answer:
        lines = [line for line in answer.read().decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def calls(url: str) -> float:
    return sum(
        value for name, value in scraped(url).items() if name.startswith("gudgeon_calls_total{") and "pid" in name
    )


@pytest.mark.io
def test_whichever_worker_is_asked_answers_for_all_also_for_one_that_was_killed() -> None:
    program = subprocess.Popen([sys.executable, "-c", textwrap.dedent(WORKERS)], stderr=subprocess.PIPE, text=True)
    try:
        assert program.stderr is not None
        url = next(line.strip() for line in program.stderr if line.startswith("http://"))
        answered: list[str] = []
        while len(set(answered)) < 3:  # the operating system distributes connections
            with SyncClient(url) as client:
                answered.append(client.call_tool("pid").text)
        for _ in range(10):
            assert calls(url) == len(answered)
        samples = scraped(url)
        assert samples["gudgeon_workers"] == 3 and not any("missing" in name for name in samples)
        assert samples["gudgeon_in_flight_limit"] == 3 * 1_000
        killed = int(answered[0])
        os.kill(killed, signal.SIGKILL)

        def is_replaced() -> bool:
            # A connection that waited for the one that ended is reset.
            with contextlib.suppress(OSError):
                samples = scraped(url)
                assert calls(url) >= len(answered) - 1, "counters do not go back"
                return samples["gudgeon_workers"] == 3 and not any("missing" in name for name in samples)
            return False

        eventually(is_replaced)
        # The numbers of one that ends by itself are those of its end, and not of the last answer.
        with SyncClient(url) as client:
            ending = client.call_tool("pid").text
        answered.append(ending)
        os.kill(int(ending), signal.SIGTERM)
        eventually(is_replaced)
        assert calls(url) == len(answered)
    finally:
        program.terminate()
        program.wait(60)
        program.stderr and program.stderr.close()
