"""Hostile peers: evil servers against the clients of three languages, evil clients against their servers, and broken
client programs against this runner. All rows run on Rust; `bindings.py` has those that run on Python and Node too.

Arguments select cells by parts of their names, such as `client / python / stdio / silence`. HOSTILE_SHOW=1 prints what
each cell came to.
"""

import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import evil_clients
import evil_servers
import load_rows  # noqa: F401, it adds rows to those of evil_clients
import self_test
import unread_rows  # noqa: F401, likewise
from processes import SERVERS, Process

# They mostly wait. A cell that fails is repeated alone, because others may have kept the machine busy.
AT_ONCE = 6
# The rows that one client program runs, one after the other. Over stdio most time goes by until servers end.
ROWS_AT_MOST = {"stdio": 12, "http": 30, "ws": 30}


def main(wanted):
    began = time.monotonic()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with Process([*SERVERS["rust"], "http://127.0.0.1:0/mcp"]) as server:
        honest = f"http://127.0.0.1:{server.wait_for_port()}/mcp"

        def attack_client(language, transport, rows):
            return evil_servers.run(language, transport, rows, honest)

        suites = [
            ("client", attack_client, evil_servers.cells),
            ("server", evil_clients.run, evil_clients.cells),
            ("runner", self_test.run, self_test.cells),
        ]
        passed, failures = run(suites, wanted)
    print(f"hostile: {passed} passed, {len(failures)} failed ({time.monotonic() - began:.0f} s)")
    for name, wrong in failures:
        print(f"  {name} FAILED: {'; '.join(wrong)}")
    return 1 if failures or not passed else 0


def run(suites, wanted):
    """Runs the cells of all suites; returns the number of those that passed, and the others with the reasons."""
    jobs = []
    known = [suite for suite, _, _ in suites]
    names = [word for word in wanted if word not in known]
    for suite, attack, cells in suites:
        if suite in wanted or names == wanted:
            for (language, transport), rows in cells(names).items():
                parts = -(-len(rows) // ROWS_AT_MOST[transport]) if suite == "client" else 1
                jobs += [(suite, attack, language, transport, rows[part::parts]) for part in range(parts)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        suspects = list(pool.map(lambda job: try_attack(*job[1:]), jobs))
    failures = []
    for (suite, attack, language, transport, _), found in zip(jobs, suspects, strict=True):
        for row, first in found:
            name = f"{suite} / {language} / {transport} / {row.name}"
            if again := try_attack(attack, language, transport, [row]):
                failures.append((name, again[0][1]))
            else:
                print(f"flaky: {name}: {'; '.join(first)}")
    return sum(len(job[-1]) for job in jobs) - len(failures), failures


def try_attack(attack, language, transport, rows):
    """Runs rows; all of them fail if that raises an exception, for instance because a server did not start."""
    try:
        return attack(language, transport, rows)
    except Exception as problem:
        return [(row, [f"{type(problem).__name__}: {problem}"]) for row in rows]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
