"""The test matrix: pairs of client program and server, with transport and era, and their results."""

import json
import os
import shutil
import tempfile
from pathlib import Path

import expect
import processes

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

clients = json.loads((HERE / "clients.json").read_text())
servers = json.loads((HERE / "servers.json").read_text())
suites = json.loads((HERE / "suites.json").read_text())

MODERN = "2026-07-28"
LEGACY = "2025-11-25"

# Further expectations of a step if one side or both are this project's.
STRICT = {
    ("official", "ours"): ["our_server"],
    ("ours", "official"): ["our_client"],
    ("ours", "published"): ["our_client"],
    ("ours", "ours"): ["our_server", "ours"],
}


class Pair:
    """A client program in an era against a server over a transport."""

    def __init__(self, client_side, client, transport, era, server_side, server):
        self.transport, self.era = transport, era
        self.row = f"{client_side} {client}, {transport}, {era}"
        self.column = f"{server_side} {server}"
        self.program = clients[client_side][client]["command"]
        self.server = servers[server_side][server]
        self.strict = STRICT.get((client_side, server_side), [])
        # HTTP+SSE of 2024-11-05 supports only sessions opened by `initialize`.
        modern = self.server["modern"] and era == "auto" and transport != "sse"
        self.revision = MODERN if modern else LEGACY
        actual = "modern" if modern else "legacy"
        lacks = self.server.get("lacks", {})
        lacks = [*lacks.get(actual, []), *lacks.get(f"{transport} {actual}", [])]
        self.steps = [
            step
            for suite in clients[client_side][client].get("suites")
            or [self.server["suite"], *self.server.get("also", [])]
            for step in suites[suite]
            # This project's `client.ping()` works in both eras.
            if actual in step.get("eras", [actual])
            and client_side in step.get("sides", [client_side])
            and client in step.get("clients", [client])
            and transport in step.get("transports", [transport])
            and step["check"] not in lacks
        ]
        self.failures = {}

    @property
    def title(self):
        return f"{self.row} → {self.column}"

    @property
    def serves(self):
        """The server's entry for this transport; None if the client starts the server."""
        return next((one for one in self.server.get("serves", []) if self.transport in one["urls"]), None)

    def over_stdio(self):
        """Returns whether the client program starts the server itself."""
        with tempfile.TemporaryDirectory(prefix="interop-") as folder:
            fill = {"dir": data_in(folder)}
            self.meet(expect.fill(self.server["command"], fill), fill)

    def meet(self, target, fill):
        """Runs the pair. `target` is a command or a URL; `fill` maps the suite's placeholders to values."""
        if missing := lacking(self.program[0], target[0]):
            self.fail_all(missing)
            return
        steps = expect.fill(self.steps, {**fill, "revision": self.revision})
        with tempfile.NamedTemporaryFile("w", prefix="interop-", suffix=".json") as file:
            json.dump(steps, file)
            file.flush()
            status, out, err = processes.run([*self.program, self.era, file.name, *target], cwd=ROOT)
        self._check(steps, status, out, processes.last_words(err))

    def fail_all(self, why):
        self.failures = {step["check"]: why for step in self.steps}

    def _check(self, steps, status, out, last_words):
        lines = {}
        for line in filter(str.strip, out.splitlines()):
            try:
                lines[json.loads(line)["check"]] = json.loads(line)["got"]
            except (ValueError, KeyError, TypeError):
                self.failures["output"] = f"not a line of ours: {line[:200]}"
        for step in steps:
            if step["check"] not in lines:
                self.failures[step["check"]] = f"no answer ({status}): {last_words}"
                continue
            for key in ("expect", *self.strict):
                why = key in step and expect.differs(step[key], lines[step["check"]])
                if why:
                    self.failures[step["check"]] = why
        if not self.failures and status != "exit 0":
            self.failures["exit"] = f"{status} after the last check: {last_words}"

    def report(self, details):
        """Returns a line per failure: a few unless details are requested, a single one if all failures are equal."""
        whys = list(self.failures.items())
        if len(whys) > 1 and len(set(self.failures.values())) == 1:
            return [f"all {len(whys)} checks: {whys[0][1]}"]
        lines = [f"{check}: {why}" for check, why in whys]
        return lines if details or len(lines) <= 3 else [*lines[:2], f"… {len(lines) - 2} more (--details)"]

    @property
    def total(self):
        return len(self.steps) + len(self.failures.keys() & {"exit", "output", "server"})

    @property
    def cell(self):
        failed = list(self.failures)
        if not failed:
            return f"{self.total}/{self.total}"
        if len(failed) == self.total:
            return f"0/{self.total}"
        return f"{self.total - len(failed)}/{self.total} not {', '.join(failed[:3])}{', …' * (len(failed) > 3)}"


def pairs(official):
    sides = (
        [("official", "official"), ("official", "published")]
        if official
        else [("official", "ours"), ("ours", "published"), ("ours", "official"), ("ours", "ours")]
    )
    for client_side, server_side in sides:
        for client, program in clients[client_side].items():
            for transport, eras in program["eras"].items():
                for era in eras:
                    for server in servers[server_side]:
                        pair = Pair(client_side, client, transport, era, server_side, server)
                        if _can_meet(pair) and _is_news(pair, client, server):
                            yield pair


def _can_meet(pair):
    return "command" in pair.server if pair.transport == "stdio" else pair.serves is not None


def _is_news(pair, client, server):
    """Excludes pairs that other tests cover: both sides in the same language, and stdio, which `make demo` tests.

    A client with its own suites is paired with this project's servers only.
    """
    if "suites" in clients[pair.row.split()[0]][client] and not pair.column.startswith("ours"):
        return False
    ours = pair.row.startswith("ours") and pair.column.startswith("ours")
    return not ours or (pair.transport != "stdio" and client.split()[0] != server)


def lacking(*programs):
    """Returns the error for a program that is missing; URLs need no program."""
    for program in programs:
        if ":" not in program and not shutil.which(program) and not os.access(ROOT / program, os.X_OK):
            return f"{program} is not there: run `make build`"
    return None


def data_in(folder):
    """Creates a folder for a server to work on."""
    data = Path(folder).resolve() / "data"
    data.mkdir()
    shutil.copy(HERE / "rust/src/pixel.png", data)
    return str(data)
