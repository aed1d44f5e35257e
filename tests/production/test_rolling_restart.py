"""Two replicas are restarted, one after the other, while clients call without a pause."""

import http.client
import json
import threading
from pathlib import Path

import peers
import pytest
import speak
from calling import COMMANDS, Caller, Outcome
from documented_sites import PUBLIC
from proxies import HAProxy, Nginx, Proxy, block, without_tls
from shelf_replicas import Replica, running

from eventually import eventually

PROXIES: dict[str, tuple[type[Proxy], str]] = {"nginx": (Nginx, "shelf.conf"), "haproxy": (HAProxy, "haproxy.cfg")}
# In seconds. nginx does not ask whether a server is ready; for HAProxy the delay is that of the documentation.
DRAIN_DELAYS = {"nginx": 1.0, "haproxy": 5.0}
AT_ONCE = 2  # calls of a caller in flight
BETWEEN = 20  # calls of each client after a replica was restarted, at least


class Load:
    """A client that calls without a pause; `ended` is the number of its calls that have ended."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ended, self.failures = 0, []
        self.stops = False

    def count(self, failure: str | None) -> None:
        self.ended += 1
        if failure:
            self.failures.append(f"{self.name}: {failure}")


class CallerLoad(Load):
    """A caller with some calls in flight."""

    def __init__(self, kind: str, era: str, url: str) -> None:
        super().__init__(f"{kind} {era}")
        self.begun = 0
        self.caller = Caller(kind, era, url, 60, self._on_outcome)

    def start(self) -> None:
        assert self.caller.connected.wait(60)
        assert self.caller.process.poll() is None, "".join(self.caller.stderr)
        for _ in range(AT_ONCE):
            self._call()

    def _on_outcome(self, _: Caller, outcome: Outcome) -> None:
        # The next call counts before this one, so that both numbers are equal at the end only.
        if not self.stops:
            self._call()
        is_right = outcome.got == f"{outcome.number}"
        self.count(None if is_right else f"{outcome.got or outcome.error} {outcome.message}")

    def _call(self) -> None:
        self.begun += 1
        self.caller.call(self.begun, "echo")

    def end(self) -> None:
        self.stops = True
        eventually(lambda: self.ended == self.begun)
        self.caller.end()


class PlainLoad(Load):
    """A plain HTTP client that keeps its connection, such as httpx or requests."""

    def __init__(self, url: str) -> None:
        super().__init__("plain HTTP")
        self.url = url
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self.thread.start()

    def _run(self) -> None:
        host = self.url.removeprefix("http://").removesuffix("/mcp")
        headers, body = speak.modern("tools/call", {"name": "echo", "arguments": {"text": "hello"}}, capabilities={})
        headers |= {"Content-Type": "application/json", "Accept": speak.BOTH}
        connection = http.client.HTTPConnection(host, timeout=60)
        while not self.stops:
            try:
                connection.request("POST", "/mcp", json.dumps(body), headers)
                answer = connection.getresponse()
                answer.read()
                self.count(None if answer.status == 200 else f"status {answer.status}")
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                self.count(repr(error))
        connection.close()

    def end(self) -> None:
        self.stops = True
        self.thread.join()


def restart_all(replicas: list[Replica], loads: list[Load]) -> list[str]:
    """Restarts the replicas under load; returns the failures."""
    for load in loads:
        load.start()
    go_on(loads)
    for replica in replicas:
        replica.terminate()
        replica.ends()
        go_on(loads)
        replica.start()
        go_on(loads)
    for load in loads:
        load.end()
    return [failure for load in loads for failure in load.failures]


def go_on(loads: list[Load]) -> None:
    wanted = [load.ended + BETWEEN for load in loads]
    eventually(lambda: all(load.ended >= least for load, least in zip(loads, wanted, strict=True)))


@pytest.mark.parametrize("proxy", PROXIES)
def test_no_call_fails(proxy: str, tmp_path: Path) -> None:
    peers.set_up("py2", "node")
    made, name = PROXIES[proxy]
    text = without_tls(block("docs/replicas.md", name))
    with (
        running(2, tmp_path, **PUBLIC, drain_delay=DRAIN_DELAYS[proxy]) as replicas,
        made(text, replicas, tmp_path, None) as behind,
    ):
        loads = [CallerLoad(kind, era, behind.url) for kind in COMMANDS for era in ("legacy", "auto")]
        failures = restart_all(replicas, [PlainLoad(behind.url), *loads])
    assert failures == []
