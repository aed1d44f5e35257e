"""Measures calls per second over stdio, for Gudgeon and the official SDKs, and whether a sleeping tool stalls others.

python3 tests/bench/stdio.py [--seconds 2] [--rounds 3] [--era legacy|modern]
"""

import argparse

from common import COMMANDS, drive, main, print_goal, print_table, ratio, remark, set_up, take_turns

ECHO = ["--tool", "echo", "--arguments", '{"text":"hello, world 16!"}']
SLEEPER = ["--mix", 'sleepy={"seconds":0.2}']
IN_FLIGHT = (1, 32)
PEERS = ("mcp 2", "ts 2")
# Gudgeon's server, the server to compare with, and the expected ratio of calls per second.
GOALS = (("python sync", "mcp 2", 100), ("python async", "mcp 2", 50), ("node", "ts 2", 5))


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--era", default="legacy", choices=("legacy", "modern"))
    options = parser.parse_args()
    here = set_up()
    common = ["--era", options.era, "--seconds", options.seconds, *ECHO]

    speed = {}
    for in_flight in IN_FLIGHT:
        jobs = {
            name: lambda name=name, in_flight=in_flight: drive(name, *common, "--in-flight", str(in_flight))
            for name in COMMANDS
            if name in here
        }
        speed[in_flight] = take_turns(jobs, options.rounds)
    sleepers = {
        name: lambda name=name: drive(name, *common, *SLEEPER) for name in ("mcp 2", "python sync") if name in here
    }
    mixed = take_turns(sleepers, options.rounds)

    print(f"stdio, {options.era}, echo of 16 bytes, medians of {options.rounds}")
    print_table(
        [
            "server",
            "in flight",
            "calls/s",
            *(f"× {peer}" for peer in PEERS),
            *["p50 µs", "p99 µs", "max µs", "CPU µs", "RSS MB"],
        ],
        [row for in_flight in IN_FLIGHT for row in speed_rows(in_flight, speed[in_flight])],
    )
    print("31 quick calls in flight, µs: alone, beside one that sleeps 0.2 s, and in that tool's first 0.3 s")
    print_table(
        ["server", "alone p50", "p99", "beside p50", "p99", "first p50", "p99", "max"],
        [
            [name, *(f"{mixed[name][part][key]:,.0f}" for part, key in MIXED_COLUMNS)]
            if name in mixed
            else [name, remark(name)]
            for name in ("mcp 2", "python sync")
        ],
    )
    print_goals(speed[32], mixed.get("python sync"))


MIXED_COLUMNS = [
    *((part, key) for part in ("alone", "beside") for key in ("p50_us", "p99_us")),
    *(("first", key) for key in ("p50_us", "p99_us", "max_us")),
]


def speed_rows(in_flight, speed):
    for name in COMMANDS:
        if name not in speed:
            yield [name, remark(name)]
            continue
        run = speed[name]
        ratios = [ratio(run["calls_per_second"], speed.get(peer, {}).get("calls_per_second")) for peer in PEERS]
        cpu, memory = (run[key] for key in ("cpu_us", "rss_mb"))
        yield [
            name,
            in_flight,
            f"{run['calls_per_second']:,.0f}",
            *("?" if times is None else f"{times:.1f}" for times in ratios),
            *(f"{run[key]:,.0f}" for key in ("p50_us", "p99_us", "max_us")),
            "?" if cpu is None else f"{cpu:.1f}",
            "?" if memory is None else f"{memory:.0f}",
        ]


def print_goals(speed, mixed):
    def times(ours, theirs):
        return ratio(*(speed.get(name, {}).get("calls_per_second") for name in (ours, theirs)))

    def of(part, key):
        return mixed[part][key] if mixed else None

    first = of("first", "p99_us")
    beside = of("beside", "p99_us")
    for ours, theirs, least in GOALS:
        goal = f"32 in flight: {ours}, at least {least} × {theirs}"
        print_goal(goal, times(ours, theirs), lambda x, least=least: x >= least, " ×")
    print_goal(
        "quick calls' median beside a sleeper below 2 × what it is alone",
        ratio(of("beside", "p50_us"), of("alone", "p50_us")),
        lambda x: x < 2,
        " ×",
    )
    print_goal("their p99 below 20 ms", beside and beside / 1e3, lambda x: x < 20, " ms")
    print_goal("and during the sleeper's first call", first and first / 1e3, lambda x: x < 20, " ms")


if __name__ == "__main__":
    main(bench)
