"""Measures the Rust server over HTTP with 1, 2 and 4 worker threads, and how long threads wait for the engine's lock.

Where there are enough processors, the driver has its own. Otherwise it shares them with the server, and calls per
second say little about threads: the capacity is what threads could do that have a processor each, from the CPU time of
a call and the time that it waits for the lock.

python3 tests/bench/threads.py [--calls 100000] [--rounds 3] [--in-flight 16] [--era legacy|modern]
"""

import argparse
import os
import subprocess
from functools import partial

from common import ROOT, Broken, main, print_goal, print_table, set_up, take_turns
from http_speed import ECHO
from listening import COMMANDS, Listening

SERVER = ROOT / "target/release/lock-waits"
THREADS = (1, 2, 4)
LEAST = 1.7


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", default="16")
    parser.add_argument("--era", choices=("legacy", "modern"), default="modern")
    options = parser.parse_args()
    set_up()
    build()
    COMMANDS["lock waits"] = [SERVER]
    words = ["--era", options.era, "--calls", str(options.calls), "--in-flight", options.in_flight, *ECHO]
    jobs = {threads: partial(once, threads, options.calls, words) for threads in THREADS}
    speeds = take_turns(jobs, options.rounds)

    print(f"HTTP, {options.era}, echo of 16 bytes, {options.in_flight} connections, medians of {options.rounds}")
    head = ["threads", "driver", "calls/s", "CPU µs", "waits / 1,000 calls", "% of time waiting", "capacity"]
    print_table(head, [row_of(threads, run) for threads, run in speeds.items()])
    capacities = [speeds.get(threads, {}).get("capacity") for threads in (1, 2)]
    gain = capacities[1] / capacities[0] if all(capacities) else None
    print_goal(f"capacity of 2 threads, at least {LEAST} × that of 1", gain, lambda x: x >= LEAST, " ×")


def build():
    command = ["cargo", "build", "--release", "--quiet", "--package", "bench-driver", "--features", "lock-waits"]
    if subprocess.run([*command, "--bin", SERVER.name], check=False, cwd=ROOT).returncode:
        raise Broken("the server that measures the lock was not built")


def once(threads, calls, words):
    all_processors = os.sched_getaffinity(0)
    servers, drivers = processors(threads, all_processors)
    os.sched_setaffinity(0, drivers)
    environment = {"TOKIO_WORKER_THREADS": str(threads)}
    try:
        with Listening("lock waits", environment=environment, processors=servers) as server:
            server.drive(*words)
            before = server.call("lock_waits")
            run = server.drive(*words)
            after = server.call("lock_waits")
    finally:
        os.sched_setaffinity(0, all_processors)
    waited = (after["seconds"] - before["seconds"]) / calls * 1e6
    available = threads * 1e6 / run["calls_per_second"]
    return {
        "calls_per_second": run["calls_per_second"],
        "cpu_us": run["cpu_us"],
        "waits": (after["count"] - before["count"]) / calls * 1e3,
        "waiting": waited / available * 100,
        "capacity": threads * 1e6 / (run["cpu_us"] + waited),
    }


def processors(threads, available):
    """Returns the processors of the server and of the driver."""
    if threads >= len(available):
        return available, available
    ordered = sorted(available)
    return set(ordered[:threads]), set(ordered[threads:])


def row_of(threads, run):
    driver = "shares" if threads >= len(os.sched_getaffinity(0)) else "beside"
    figures = f"{run['cpu_us']:.1f}", f"{run['waits']:.1f}", f"{run['waiting']:.2f}", f"{run['capacity']:,.0f}"
    return [threads, driver, f"{run['calls_per_second']:,.0f}", *figures]


if __name__ == "__main__":
    main(bench)
