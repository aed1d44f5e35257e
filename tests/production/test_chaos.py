"""Three replicas behind nginx, without sticky routing, are killed and started again while clients call.

Every call ends in its result or in an error of its library, and nothing hangs. What a handler does in `ctx.step`
happens once. With a store, which is restarted twice, subscribers are told of changes.
GUDGEON_CHAOS is the number of calls, 2,000 by default.
"""

import os
import random
import statistics
import threading
from collections import Counter
from contextlib import nullcontext
from pathlib import Path

import peers
import pytest
from calling import COMMANDS, Caller, Outcome
from documented_sites import PUBLIC
from proxies import Nginx, block, without_tls
from redis_server import Redis
from shelf_replicas import running

# The stores of the replicas: "none", or "redis", which is restarted twice, empty.
STORES = ["none", "redis"]
SEED = 36
CALLS = int(os.environ.get("GUDGEON_CHAOS", "2000"))
# Calls between two kills. The second half of them, and those that wait for a time limit, run while a replica is away.
ROUND = 40
KINDS = {"echo": 8, "counted": 4, "order": 4, "subscribed": 1}
# Official clients that lose notifications whatever servers do: the one for Python gives a GET stream up for good when
# it has broken twice, and neither opens a subscription of 2026-07-28 again.
LOSSY = {"official python legacy", "official python auto", "official ts auto"}
# Questions and subscriptions before 2026-07-28 belong to one replica. Without a store most of them end by a time limit,
# so only some rounds have them.
NEEDS_STORE = {"order", "subscribed"}
ROUNDS_BETWEEN = 10
TIMEOUT = 3.0  # seconds, of the clients
HANGS = 60.0  # seconds for a round
GROWTH = 8 << 20  # bytes of resident memory
EXPECTED = {
    "echo": lambda number: {f"{number}"},
    "order": lambda number: {f"{number}: more"},
    "counted": lambda number: {"5"},
    "subscribed": lambda number: {"told", "not told"},
    # Of changes whose calls were answered.
    "notified": lambda number: {"told"},
}
# The errors of each library; others would be defects.
ERRORS = {
    "ours python": {"ConnectionLost", "ConnectFailed", "CallTimeout", "ProtocolError", "ToolFailed"},
    "official python": {"MCPError", "ToolFailed"},
    "official ts": {"SdkError", "SdkHttpError", "ProtocolError", "ToolFailed"},
}


class Chaos:
    """The calls of all callers, and what became of them."""

    def __init__(self, url: str, has_store: bool) -> None:
        self.has_store = has_store
        self.changed = threading.Condition()
        self.planned: dict[int, tuple[str, str]] = {}
        self.outcomes: dict[int, Outcome] = {}
        self.memory: dict[str, list[int]] = {}
        self.callers = [
            Caller(kind, era, url, TIMEOUT, self._on_outcome) for kind in COMMANDS for era in ("legacy", "auto")
        ]
        for caller in self.callers:
            assert caller.connected.wait(60) and caller.process.poll() is None, caller.stderr

    def _on_outcome(self, caller: Caller, outcome: Outcome) -> None:
        with self.changed:
            assert outcome.number not in self.outcomes
            self.outcomes[outcome.number] = outcome
            # How much memory the official clients take is up to them.
            if caller.is_ours:
                self.memory.setdefault(caller.name, []).append(outcome.memory)
            self.changed.notify_all()

    def hand_out(self, chance: random.Random, has_all: bool) -> None:
        for _ in range(ROUND):
            caller = chance.choice(self.callers)
            kind = chance.choices(list(KINDS), KINDS.values())[0]
            if kind in NEEDS_STORE and caller.is_legacy and not has_all:
                kind = "echo"
            if kind == "subscribed" and self.has_store and caller.name not in LOSSY:
                kind = "notified"
            number = len(self.planned)
            self.planned[number] = (caller.name, kind)
            caller.call(number, kind)

    def wait_for(self, number: int) -> None:
        """Waits until so many calls have ended."""
        with self.changed:
            if not self.changed.wait_for(lambda: len(self.outcomes) >= number, HANGS):
                hung = [self.planned[each] for each in self.planned.keys() - self.outcomes.keys()]
                dead = {
                    caller.name: caller.stderr[-20:] for caller in self.callers if caller.process.poll() is not None
                }
                raise AssertionError(f"calls hang: {hung}; clients that ended: {dead}")

    def end(self) -> None:
        for caller in self.callers:
            caller.end()

    def wrong(self) -> list[str]:
        """Returns results that are not those of the call, and errors that are not those of the client's library."""
        found = []
        for number, outcome in sorted(self.outcomes.items()):
            caller, kind = self.planned[number]
            expected = EXPECTED[kind](number)
            if outcome.error:
                is_right = outcome.error in ERRORS[caller.rpartition(" ")[0]]
            else:
                is_right = outcome.got in expected
            if not is_right:
                found.append(f"{caller}: {kind} {number}: {outcome}")
        return found

    def summary(self) -> str:
        count = Counter(
            (*self.planned[number], outcome.error or ("told" if outcome.got == "told" else "result"))
            for number, outcome in self.outcomes.items()
        )
        return "\n".join(f"{times:5} {' / '.join(name)}" for name, times in sorted(count.items()))


@pytest.mark.parametrize("store", STORES)
def test_every_call_ends_whichever_replica_is_killed(store: str, tmp_path: Path) -> None:
    peers.set_up("py2", "node")
    chance = random.Random(SEED)
    rounds = CALLS // ROUND
    with Redis(tmp_path) if store == "redis" else nullcontext() as redis:
        options = {**PUBLIC, **({"store": redis.url} if redis else {})}
        text = without_tls(block("docs/replicas.md", "shelf.conf"))
        with (
            running(3, tmp_path, **options) as replicas,
            Nginx(text, replicas, tmp_path, None) as proxy,
        ):
            chaos = Chaos(proxy.url, has_store=bool(redis))
            lifetimes = []
            for at in range(rounds):
                chaos.hand_out(chance, has_all=bool(redis) or at % ROUNDS_BETWEEN == 0)
                chaos.wait_for(at * ROUND + ROUND // 2)
                replica = replicas[at % 3]
                lifetimes.append(replica.resident())
                replica.kill()
                if redis and at in (rounds // 3, rounds * 2 // 3):
                    redis.restart()
                replica.start()
            chaos.wait_for(rounds * ROUND)
            chaos.end()
    print(chaos.summary())
    assert chaos.wrong() == []
    check_steps(chaos, (tmp_path / "ledger").read_text().split())
    for name, memory in [("replicas", lifetimes), *chaos.memory.items()]:
        check_flat(name, memory)


def check_steps(chaos: Chaos, ledger: list[str]) -> None:
    """Checks that each side effect happened once at most, and exactly once for a call with a result."""
    ran = Counter(map(int, ledger))
    twice = [number for number, times in ran.items() if times > 1]
    assert [(chaos.planned[number], chaos.outcomes[number], ran[number]) for number in twice] == []
    orders = [number for number, (_, kind) in chaos.planned.items() if kind == "order"]
    assert [number for number in orders if chaos.outcomes[number].got and not ran[number]] == []


def check_flat(name: str, memory: list[int]) -> None:
    """Compares the second and the last fifth, because programs load modules during their first calls."""
    fifth = len(memory) // 5
    before, after = (statistics.median(part) for part in (memory[fifth : 2 * fifth], memory[-fifth:]))
    assert after - before < GROWTH, f"{name} grew from {before} to {after} bytes"
