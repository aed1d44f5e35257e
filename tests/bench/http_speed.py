"""Measures calls per second over HTTP at 16 connections, for Gudgeon and the official SDKs, in each era.

python3 tests/bench/http_speed.py [--seconds 2] [--rounds 3] [--in-flight 16] [--era legacy|modern]
"""

import argparse

from common import main, print_goal, print_table, ratio, remark, set_up, take_turns
from listening import COMMANDS, RUST_SERVER, Listening

ECHO = ["--tool", "echo", "--arguments", '{"text":"hello, world 16!"}']
PEERS = ("mcp 2", "ts 2")
ERAS = ("legacy", "modern")


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", default="16")
    parser.add_argument("--era", choices=ERAS)
    options = parser.parse_args()
    names = available(set_up())
    speeds = {}
    for era in [options.era] if options.era else ERAS:
        words = ["--era", era, "--seconds", options.seconds, "--in-flight", options.in_flight, *ECHO]
        speeds[era] = take_turns(
            {name: lambda name=name, words=words: once(name, words) for name in names}, options.rounds
        )

    print(f"HTTP, echo of 16 bytes, {options.in_flight} connections, medians of {options.rounds}")
    head = ["server", "era", "calls/s", *(f"× {peer}" for peer in PEERS)]
    rows = [row for era in speeds for row in rows_of(era, speeds[era])]
    print_table([*head, "p50 µs", "p99 µs", "max µs", "CPU µs", "RSS MB"], rows)
    for era, speed in speeds.items():
        print_goals(era, speed)


def available(here):
    """Returns the names of the runnable servers among those that `set_up` found."""
    built = {"mcp 2": "mcp 2" in here, "python": "python sync" in here, "ts 2": "ts 2" in here, "node": "node" in here}
    built["rust"] = RUST_SERVER.is_file()
    return [name for name in COMMANDS if built[name]]


def once(name, words):
    with Listening(name) as server:
        return server.drive(*words)


def rows_of(era, speed):
    for name in COMMANDS:
        if name not in speed:
            yield [name, remark(name)]
            continue
        run = speed[name]
        ratios = [ratio(run["calls_per_second"], speed.get(peer, {}).get("calls_per_second")) for peer in PEERS]
        yield [
            name,
            era,
            f"{run['calls_per_second']:,.0f}",
            *("?" if times is None else f"{times:.1f}" for times in ratios),
            *(f"{run[key]:,.0f}" for key in ("p50_us", "p99_us", "max_us")),
            *("?" if run[key] is None else f"{run[key]:.1f}" for key in ("cpu_us", "rss_mb")),
        ]


def print_goals(era, speed):
    def times(ours, theirs):
        return ratio(*(speed.get(name, {}).get("calls_per_second") for name in (ours, theirs)))

    print_goal(f"{era}: Python sync, at least 25 × mcp 2 run()", times("python", "mcp 2"), lambda x: x >= 25, " ×")
    print_goal(f"{era}: Node, at least 12 × ts 2", times("node", "ts 2"), lambda x: x >= 12, " ×")


if __name__ == "__main__":
    main(bench)
