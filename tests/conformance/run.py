"""Runs the official conformance suite against the fixture servers and clients, and our authorization server for tests.

    .venv/bin/python tests/conformance/run.py [--all | --mounts] [--url URL] [TEXT]…

Each server is tested with both sets of scenarios over its own HTTP server, each mount with one set, or both with
`--all`; each client with both sets; the authorization server with two kinds of clients. Texts select the runs whose
titles contain them, `--url` tests a server that is already running. Warnings count as failures. A scenario that fails
is run again, alone.
"""

from __future__ import annotations

import argparse
import contextlib
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, Queue

import authorization
import clients
import suite
from suite import LEGACY, MODERN, SETS, Broken
from verdict import Verdict, evaluate, scenarios, table, totals

HERE = Path(__file__).resolve().parent
LANGUAGES = ("python", "node", "rust")
MOUNTS = {
    "python asgi": (["python", "--mount", "asgi"], LEGACY),
    "node fetch": (["node", "--mount", "fetch"], MODERN),
    "node node": (["node", "--mount", "node"], LEGACY),
    "rust tower": (["rust", "--mount", "tower"], MODERN),
}
AT_ONCE = 3
READY = 20  # seconds for a server to print its URL
END = 20  # seconds for a server to exit


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="both sets against every mount")
    parser.add_argument("--mounts", action="store_true", help="only the sets that --all adds")
    parser.add_argument("--url", help="test a server that is already running")
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    options = parser.parse_args()
    if not suite.is_installed():
        sys.exit("the official suite is not installed; run `make setup`")
    sets = {revision: suite.run("list", "--requirements", revision).stdout for revision in SETS}
    for_servers, for_clients = (
        {revision: scenarios(listing, role) for revision, listing in sets.items()} for role in ("server", "client")
    )
    with ThreadPoolExecutor(AT_ONCE) as pool:
        servers = [
            pool.submit(_run, title, command, revision, for_servers[revision], options.url)
            for title, command, revision in _servers(options)
        ]
        drivers = [
            pool.submit(clients.run, title, language, revision, for_clients[revision])
            for title, language, revision in _clients(options)
        ]
        for_issuers = {"": authorization.scenarios(suite.run("list").stdout)}
        issuers = [
            pool.submit(authorization.run, title, client, for_issuers[""]) for title, client in _issuers(options)
        ]
        runs = [
            ([run.result() for run in of_role], order)
            for of_role, order in ((servers, for_servers), (drivers, for_clients), (issuers, for_issuers))
        ]
    verdicts = [verdict for of_role, _ in runs for verdict in of_role]
    if not verdicts:
        sys.exit("no run matches")
    for of_role, names in runs:
        if of_role:
            print(table(of_role, list(dict.fromkeys(name for of_set in names.values() for name in of_set))) + "\n")
    print(totals(verdicts))
    return 1 if any(verdict.failed for verdict in verdicts) else 0


def _servers(options: argparse.Namespace) -> Iterator[tuple[str, list[str], str]]:
    every: list[tuple[str, list[str], str]] = []
    if options.url:
        every += [("given", [], revision) for revision in SETS]
    else:
        if not options.mounts:
            every += [(name, [name], revision) for name in LANGUAGES for revision in SETS]
        every += [
            (name, command, revision)
            for name, (command, usual) in MOUNTS.items()
            for revision in SETS
            if options.all or options.mounts != (revision == usual)
        ]
    for name, command, revision in every:
        title = f"{name} {revision[:4]}"
        if all(text in title for text in options.texts):
            yield title, command, revision


def _clients(options: argparse.Namespace) -> Iterator[tuple[str, str, str]]:
    if options.url or options.mounts:
        return
    for language in LANGUAGES:
        for revision in SETS:
            title = f"{language} client {revision[:4]}"
            if all(text in title for text in options.texts):
                yield title, language, revision


def _issuers(options: argparse.Namespace) -> Iterator[tuple[str, str]]:
    if options.url or options.mounts:
        return
    for name, client in authorization.CLIENTS.items():
        title = f"authorization server, {name}"
        if all(text in title for text in options.texts):
            yield title, client


def _run(title: str, command: list[str], revision: str, expected: list[str], url: str | None) -> Verdict:
    """Runs a set of scenarios against a server, which must exit cleanly too."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        try:
            with contextlib.nullcontext(url) if url else _serving(command) as address:
                suite.run("server", "--url", address, "--requirements", revision, "-o", folder)
            verdict = evaluate(title, Path(folder), expected)
        except Broken as error:
            verdict = evaluate(title, Path(folder), [])
            verdict.blame("(the server)", f"failed: {error}")
    for scenario in [] if url else list(verdict.bad):
        verdict.try_again(scenario, lambda again, scenario=scenario: _alone(again, command, revision, scenario))
    return verdict


def _alone(verdict: Verdict, command: list[str], revision: str, scenario: str) -> None:
    """Runs a scenario against a new server."""
    with tempfile.TemporaryDirectory(prefix="conformance-") as folder:
        chosen = ["--scenario", scenario, "--spec-version", revision, "--force"]
        try:
            with _serving(command) as address:
                suite.run("server", "--url", address, *chosen, "-o", folder)
        except Broken as error:
            verdict.blame(scenario, f"failed: {error}")
        verdict.add(evaluate(verdict.title, Path(folder), [scenario]))


@contextlib.contextmanager
def _serving(command: list[str]) -> Iterator[str]:
    """Starts a fixture server, yields its URL, and ends it by SIGTERM; its exit status must be 0."""
    language, *more = command
    serve = [str(HERE / "serve"), language, "--http", "127.0.0.1:0", *more]
    child = subprocess.Popen(serve, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
    said: list[str] = []
    urls: Queue[str] = Queue()
    reader = threading.Thread(target=_listen, args=(child, said, urls), daemon=True)
    reader.start()
    try:
        yield _first(urls, said)
        child.send_signal(signal.SIGTERM)
        try:
            status = child.wait(END)
        except subprocess.TimeoutExpired:
            raise Broken(f"SIGTERM did not end it within {END} s") from None
        if status != 0:
            reader.join(END)
            raise Broken(f"SIGTERM ended it with status {status}: {_last(said)}")
    finally:
        child.kill()
        child.wait()


def _listen(child: subprocess.Popen[str], said: list[str], urls: Queue[str]) -> None:
    for line in child.stderr or ():
        said.append(line.rstrip())
        del said[:-20]
        if line.startswith("http://"):
            urls.put(line.strip())
    urls.put("")


def _first(urls: Queue[str], said: list[str]) -> str:
    try:
        url = urls.get(timeout=READY)
    except Empty:
        raise Broken(f"it said no URL within {READY} s: {_last(said)}") from None
    if not url:
        raise Broken(f"it ended before it said its URL: {_last(said)}")
    return url


def _last(said: list[str]) -> str:
    """Returns the line with the error, or else the last line."""
    errors = [line for line in said if "rror" in line or "panicked" in line]
    return next(iter([*errors[-1:], *said[-1:]]), "it said nothing")[:400]


if __name__ == "__main__":
    sys.exit(main())
