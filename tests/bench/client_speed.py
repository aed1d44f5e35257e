"""Measures calls per second of clients over HTTP with 1 and 32 concurrent calls, for Gudgeon and the official SDKs, in
each era, against Gudgeon's Rust server.

python3 tests/bench/client_speed.py [--seconds 2] [--rounds 3] [--era legacy|modern]
"""

import argparse
import json
import subprocess

from common import OURS_PYTHON, ROOT, Broken, main, print_goal, print_table, ratio, remark, set_up, take_turns
from listening import Listening

CLIENTS = ROOT / "tests/bench/clients"
COMMANDS = {
    "mcp 2": [ROOT / ".interop/py2/bin/python", CLIENTS / "mcp2.py"],
    "python": [OURS_PYTHON, CLIENTS / "ours.py"],
    "ts 2": ["node", CLIENTS / "ts2.mjs"],
    "node": ["node", CLIENTS / "ours.mjs"],
}
ERAS = ("legacy", "modern")
IN_FLIGHT = (1, 32)
# Gudgeon's client, the client to compare with, and the expected ratio of calls per second by concurrency.
GOALS = (("python", "mcp 2", {1: 8, 32: 25}), ("node", "ts 2", {1: 5, 32: 12}))


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--era", choices=ERAS)
    options = parser.parse_args()
    here = set_up()
    names = [name for name in COMMANDS if (name if name != "python" else "python sync") in here]
    for era in [options.era] if options.era else ERAS:
        for in_flight in IN_FLIGHT:
            words = [era, str(in_flight), options.seconds]
            jobs = {name: lambda name=name, words=words: once(name, words) for name in names}
            print_results(era, in_flight, take_turns(jobs, options.rounds), options.rounds)


def once(name, words):
    era, *rest = words
    with Listening("rust") as server:
        command = [*COMMANDS[name], f"http://127.0.0.1:{server.port}/mcp", era, *rest]
        try:
            done = subprocess.run(command, check=False, cwd=ROOT, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            raise Broken("no end after 120 s") from None
        if done.returncode:
            raise Broken("\n".join(done.stderr.strip().splitlines()[-20:]))
        return json.loads(done.stdout)


def print_results(era, in_flight, speeds, rounds):
    print(f"clients over HTTP, {era}, echo of 16 bytes, {in_flight} in flight, medians of {rounds}")
    rows = [
        [name, f"{speeds[name]['calls_per_second']:,.0f}", f"{speeds[name]['cpu_us']:,.0f}"]
        if name in speeds
        else [name, remark(name)]
        for name in COMMANDS
    ]
    print_table(["client", "calls/s", "CPU µs"], rows)
    for ours, theirs, least in GOALS:
        times = ratio(*(speeds.get(name, {}).get("calls_per_second") for name in (ours, theirs)))
        goal = f"{era}, {in_flight} in flight: {ours}, at least {least[in_flight]} × {theirs}"
        print_goal(goal, times, lambda x, least=least[in_flight]: x >= least, " ×")
    print()


if __name__ == "__main__":
    main(bench)
