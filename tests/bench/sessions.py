"""Measures streams: 10,000 at once, each on its own connection, closed abruptly, twice.

They are GET streams of legacy sessions, then modern subscriptions.

python3 tests/bench/sessions.py [--count 10000] [--idle 5] [SERVER…]
"""

import argparse
import subprocess
import time

from common import Broken, broken, main, print_goal, print_table, remark, set_up
from http_speed import available
from listening import DRIVER, OURS, Listening, allow_many_files

KILOBYTE = 1000
KINDS = {
    "legacy": ("legacy sessions, each with a GET stream", 25 * KILOBYTE),
    "modern": ("modern subscriptions", 18 * KILOBYTE),
}
WARM_UP = 200


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--idle", type=float, default=5.0, help="seconds until a session that nobody uses ends")
    parser.add_argument("servers", nargs="*", default=OURS, help=", ".join(OURS))
    options = parser.parse_args()
    if unknown := set(options.servers) - set(OURS):
        parser.error(f"no server of ours: {', '.join(unknown)}")
    most = allow_many_files()
    if most < options.count + 200:
        raise Broken(f"{options.count} connections need as many file descriptors; this machine allows {most}")
    names = [name for name in available(set_up()) if name in options.servers]
    for era in KINDS:
        bench_era(era, names, options)


def bench_era(era, names, options):
    kind, most = KINDS[era]
    runs = {}
    for name in names:
        try:
            runs[name] = once(name, era, options.count, options.idle)
        except Broken as why:
            broken[name] = str(why)

    print(f"{options.count:,} {kind}; memory in MB, after a collection")
    head = [
        "server",
        "before",
        "with all",
        "kB each",
        "after idle",
        "again",
        "kB more each",
        "files left",
        "opened in s",
    ]
    print_table(head, [row_of(name, runs) for name in names])
    for name in names:
        run = runs.get(name, {})
        print_goal(
            f"{name}: one costs at most {most // KILOBYTE} kB",
            run.get("each"),
            lambda x: x * KILOBYTE <= most,
            " kB",
        )
        print_goal(f"{name}: file descriptors are given back", run.get("left"), lambda x: x <= 2)
        print_goal(
            f"{name}: the next {options.count:,} reuse the memory (at most 10 % more)",
            run.get("growth"),
            lambda x: x <= 10,
            " %",
        )


def once(name, era, count, idle):
    # The limit hardly exceeds one lot, so the second is accepted only after the first has ended.
    options = {"max_sessions": count + WARM_UP, "session_idle": idle, "idle_timeout": 3600.0, "keep_alive": 3600.0}
    with Listening(name, **options) as server:
        with Held(server, era, WARM_UP):
            pass
        time.sleep(idle * 1.5)
        files, before = server.descriptors(), server.resident()
        with Held(server, era, count) as first:
            full = server.resident()
        left = wait_for_files(server, files)
        time.sleep(idle * 1.5)
        empty = server.resident()
        with Held(server, era, count):
            again = server.resident()
    return {
        "before": before / 1e6,
        "full": full / 1e6,
        "each": (full - before) / count / KILOBYTE,
        "empty": empty / 1e6,
        "again": again / 1e6,
        "more": (again - full) / count / KILOBYTE,
        "growth": (again - full) / (full - before) * 100,
        "left": left,
        "seconds": first.seconds,
    }


class Held:
    """Opens streams with a driver process, which is killed at the end."""

    def __init__(self, server, era, count):
        start = time.monotonic()
        at = f"127.0.0.1:{server.port}"
        command = [str(DRIVER), "sessions", "--at", at, "--era", era, "--count", str(count)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if self.process.stdout.readline() != "open\n":
            raise Broken(self.process.communicate()[1].strip())
        self.seconds = time.monotonic() - start

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()


def wait_for_files(server, before):
    """Returns the number of additional open file descriptors once it is stable, after at most 15 s."""
    until = time.monotonic() + 15
    while (left := server.descriptors() - before) > 0 and time.monotonic() < until:
        time.sleep(0.2)
    return left


def row_of(name, runs):
    if name not in runs:
        return [name, remark(name)]
    run = runs[name]
    megabytes = [f"{run[key]:.1f}" for key in ("before", "full")]
    later = [f"{run['empty']:.1f}", f"{run['again']:.1f}", f"{run['more']:.1f}"]
    return [name, *megabytes, f"{run['each']:.1f}", *later, run["left"], f"{run['seconds']:.1f}"]


if __name__ == "__main__":
    main(bench)
