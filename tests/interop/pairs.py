"""The test matrix: pairs of client program and server, with transport and era, and their results."""

import json
import tempfile
from pathlib import Path

import expect
from programs import RUST
from shared_server import SharedServer, data_in

HERE = Path(__file__).resolve().parent

clients, servers = (
    expect.fill(json.loads((HERE / name).read_text()), {"rust": RUST}) for name in ("clients.json", "servers.json")
)
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

# The pairs of this project's own programs. The same core is at both ends, so each transport and era is there once, and
# each binding is a client and a server once over each transport. Rust's client and server meet in the core's tests, and
# over stdio all languages meet in `make demo`.
OURS = {
    ("http", "legacy"): ("python", "node"),
    ("http", "auto"): ("node", "python"),
    ("sse", "legacy"): ("node", "python"),
    ("sse", "auto"): ("python sync", "node"),
    ("ws", "legacy"): ("python sync", "node"),
    ("ws", "auto"): ("node", "python"),
    ("tcp", "legacy"): ("node", "python"),
    ("tcp", "auto"): ("python", "node"),
    ("unix", "legacy"): ("python", "node"),
    ("unix", "auto"): ("node", "python"),
}


#: The side of this project's servers through which clients reach an upstream server.
THROUGH = "through"


class Pair:
    """A client program in an era against a server over a transport."""

    def __init__(self, client_side, client, transport, era, server_side, server):
        self.transport, self.era = transport, era
        self.row = f"{client_side} {client}, {transport}, {era}"
        self.column = f"{server_side} {server}"
        program = clients[client_side][client]
        self.command = program["command"]
        self.is_bare = program.get("is_bare", False)
        self.server = servers[server_side][server]
        self.strict = STRICT.get((client_side, server_side), [])
        # HTTP+SSE of 2024-11-05 supports only sessions opened by `initialize`.
        modern = self.server["modern"] and era == "auto" and transport != "sse"
        self.revision = MODERN if modern else era if era[0].isdigit() else LEGACY
        actual = "modern" if modern else "legacy"
        lacks = self.server.get("lacks", {})
        lacks = [*lacks.get(actual, []), *lacks.get(era, []), *lacks.get(f"{transport} {actual}", [])]
        self.steps = [
            prefixed(step, self.server["prefix"]) if server_side == THROUGH else step
            for suite in program.get("suites") or [self.server["suite"], *self.server.get("also", [])]
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
    def shared_by(self):
        """The name of the listening server that the pair shares with others; None if the client starts the server."""
        return None if self.transport == "stdio" else (self.column, *self._serves["urls"])

    def new_server(self):
        """Returns the listening server, which is not started yet; None if the client starts the server."""
        if self.transport == "stdio":
            return None
        return SharedServer(self._serves, is_ours=self.column.split()[0] in ("ours", THROUGH))

    @property
    def _serves(self):
        """The server's entry for this transport."""
        return next((one for one in self.server.get("serves", []) if self.transport in one["urls"]), None)

    def meet(self, program, server):
        """Runs the pair. Without a server the program starts it."""
        if server is None:
            with tempfile.TemporaryDirectory(prefix="interop-") as folder:
                fill = {"dir": data_in(folder)}
                self._perform(program, expect.fill(self.server["command"], fill), fill)
            return
        try:
            url = server.url(self.transport)
        except OSError as problem:
            self.failures = {step["check"]: str(problem) for step in self.steps}
        else:
            self._perform(program, url, server.fill)

    def _perform(self, program, target, fill):
        """Performs the steps. `target` is a command or a URL; `fill` maps the suite's placeholders to values."""
        steps = expect.fill(self.steps, {**fill, "revision": self.revision})
        lines, problem = program.perform({"era": self.era, "target": target, "bare": self.is_bare, "steps": steps})
        got = {}
        for line in lines:
            if "check" in line and "got" in line:
                got[line["check"]] = line["got"]
            else:
                self.failures["output"] = f"not the result of a step: {line}"
        for step in steps:
            if step["check"] not in got:
                self.failures[step["check"]] = f"no answer ({problem})"
                continue
            for key in ("expect", *self.strict):
                why = key in step and expect.differs(step[key], got[step["check"]])
                if why:
                    self.failures[step["check"]] = why
        if not self.failures and problem:
            self.failures["end"] = f"{problem}, after the last check"

    def report(self, details=False):
        """Returns a line per failure: a few unless details are requested, a single one if all failures are equal."""
        whys = list(self.failures.items())
        if len(whys) > 1 and len(set(self.failures.values())) == 1:
            return [f"all {len(whys)} checks: {whys[0][1]}"]
        lines = [f"{check}: {why}" for check, why in whys]
        return lines if details or len(lines) <= 3 else [*lines[:2], f"… {len(lines) - 2} more (--details)"]

    @property
    def total(self):
        return len(self.steps) + len(self.failures.keys() - {step["check"] for step in self.steps})

    @property
    def cell(self):
        failed = list(self.failures)
        if not failed:
            return f"{self.total}/{self.total}"
        if len(failed) == self.total:
            return f"0/{self.total}"
        return f"{self.total - len(failed)}/{self.total} not {', '.join(failed[:3])}{', …' * (len(failed) > 3)}"


def prefixed(step, prefix):
    """Returns a step against a server that has the server of its suite as an upstream server, with this prefix."""
    names = {key: f"{prefix}_{step[key]}" for key in ("name", "prompt", "witness") if key in step}
    expected = step["expect"]
    if step["do"] == "connect":
        expected = {**expected, "server": "interop"}
    elif step["do"] in ("list_tools", "list_prompts"):
        expected = _each(expected, lambda name: f"{prefix}_{name}")
    return {**step, **names, "expect": expected}


def _each(expected, change):
    if isinstance(expected, dict):
        return {key: _each(value, change) for key, value in expected.items()}
    return [change(value) for value in expected]


# The sides of client and server, by the kind of matrix.
SIDES = {
    "all": [("official", "ours"), ("official", THROUGH), ("ours", "published"), ("ours", "official"), ("ours", "ours")],
    "official": [("official", "official"), ("official", "published")],
    "ours": [("ours", "ours")],
}


def pairs(kind):
    """Returns the pairs of a kind of matrix; those of "ours" are all that there are."""
    chosen = _is_in_other_languages if kind == "ours" else _is_chosen
    for client_side, server_side in SIDES[kind]:
        for client, program in clients[client_side].items():
            for transport, eras in program["eras"].items():
                for server, entry in servers[server_side].items():
                    for era in [*eras, *entry.get("revisions", [])]:
                        pair = (client_side, client, transport, era, server_side, server)
                        if _serves(entry, transport) and chosen(*pair):
                            yield Pair(*pair)


def _serves(server, transport):
    """Returns whether a server serves over this transport."""
    if transport == "stdio":
        return "command" in server
    return any(transport in one["urls"] for one in server.get("serves", []))


def _is_chosen(client_side, client, transport, era, server_side, server):
    """Returns whether a pair is of use: one of OURS, or with a program of another project.

    A client with its own suites is paired with this project's servers only.
    """
    if client_side == server_side == "ours":
        return OURS.get((transport, era)) == (client, server)
    return server_side == "ours" or "suites" not in clients[client_side][client]


def _is_in_other_languages(client_side, client, transport, era, server_side, server):
    return transport != "stdio" and client.split()[0] != server
