"""Clients of the official SDKs, with their default options, at three replicas without sticky routing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import peers
import protected
import pytest
import replicas as interactive
import speak
from documented_sites import PUBLIC
from programs import Program
from proxies import HAProxy, Nginx, Proxy, block, without_tls
from shelf_replicas import Replica, running

from eventually import eventually

PROXIES: dict[str, tuple[type[Proxy], str]] = {"nginx": (Nginx, "shelf.conf"), "haproxy": (HAProxy, "haproxy.cfg")}
COMMANDS = {**interactive.CLIENTS, "official rust": protected.OTHER_CLIENTS["rmcp"]}
BOTH_ERAS = ["official mcp 2", "official ts 2", "ours python", "ours node"]
CLIENTS = [
    *((client, era) for client in BOTH_ERAS for era in ("legacy", "auto")),
    ("official mcp 1", "legacy"),
    ("official ts 1", "legacy"),
    ("official rust", "auto"),
]
CALLS = 20
# Calls during which replicas are killed; it is unlikely that one replica serves them all.
HELD = 12
SECONDS = 120  # for a job

Meet = Callable[[str, str, str, list[dict[str, Any]]], dict[str, Any]]


@pytest.fixture(scope="module")
def meet() -> Iterator[Meet]:
    """Performs the steps with a client program; returns the results by the names of the steps."""
    peers.set_up("py1", "py2", "node", "rmcp")
    programs: dict[str, Program] = {}

    def meet(client: str, era: str, target: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
        program = programs.setdefault(client, Program(COMMANDS[client], SECONDS))
        lines, problem = program.perform({"era": era, "target": target, "steps": steps})
        assert problem is None and len(lines) == len(steps), (problem, lines)
        return {line["check"]: line["got"] for line in lines}

    yield meet
    assert {name: wrong for name, program in programs.items() if (wrong := program.close())} == {}


class Group:
    """Three replicas behind a proxy that gives requests to each in turn."""

    def __init__(self, proxy: Proxy, replicas: list[Replica], folder: Path) -> None:
        self.proxy, self.replicas, self.folder = proxy, replicas, folder

    def serving(self) -> str:
        """Returns the name of the replica that gets a call."""
        return speak.text_of(speak.reply(speak.call_modern(self.proxy, "replica")))


@pytest.fixture(scope="module", params=PROXIES)
def group(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    proxy, name = PROXIES[request.param]
    folder = tmp_path_factory.mktemp("group")
    with (
        running(3, folder, **PUBLIC) as replicas,
        proxy(without_tls(block("docs/replicas.md", name)), replicas, folder, None) as behind,
    ):
        yield Group(behind, replicas, folder)


@pytest.mark.parametrize("client, era", CLIENTS)
def test_each_call_succeeds_at_whichever_replica(group: Group, meet: Meet, client: str, era: str) -> None:
    steps = [{"check": f"{number}", "do": "call", "name": "replica"} for number in range(CALLS)]
    got = meet(client, era, group.proxy.url, steps)
    assert {name: one for name, one in got.items() if one.get("is_error") is not False} == {}
    assert {one["text"] for one in got.values()} == {replica.name for replica in group.replicas}


@pytest.mark.parametrize("client, era", CLIENTS)
def test_the_next_call_after_a_kill_succeeds(
    group: Group, meet: Meet, tmp_path_factory: pytest.TempPathFactory, client: str, era: str
) -> None:
    """While a call is held, the replicas that do not serve it are killed and started again, until each of them was."""
    names = [f"{client} {era} {number}".replace(" ", "-") for number in range(HELD)]
    steps = [
        step
        for name in names
        for step in (
            {"check": name, "do": "call", "name": "held", "arguments": {"name": name}},
            {"check": f"after {name}", "do": "call", "name": "replica"},
        )
    ]
    all_names = {replica.name for replica in group.replicas}
    killed: set[str] = set()
    with ThreadPoolExecutor(1) as pool:
        meeting = pool.submit(meet, client, era, group.proxy.url, steps)
        for name in names:
            started = group.folder / f"{name}.started"
            eventually(lambda started=started: meeting.done() or (started.exists() and started.read_text()))
            if meeting.done():
                break
            serving = started.read_text().strip()
            restarted = [replica for replica in group.replicas if replica.name not in (serving, *killed)]
            for replica in restarted:
                replica.restart()
                killed.add(replica.name)
            if restarted:
                # HAProxy checks first whether they are ready.
                eventually(lambda: {group.serving() for _ in range(2 * len(all_names))} == all_names)
            (group.folder / name).touch()
        got = meeting.result()
    assert {name: one for name, one in got.items() if one.get("is_error") is not False} == {}
    assert killed == all_names
