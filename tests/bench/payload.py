"""Measures calls per second whose payload goes both ways, of servers over stdio and HTTP and of clients over HTTP, for
Gudgeon and the official SDKs. A tool that returns its text sends it back twice, as content and as structured content,
except in TypeScript.

python3 tests/bench/payload.py [--seconds 1] [--rounds 3] [--in-flight 4] [--era legacy|modern]
                               [--only stdio|HTTP|clients] [--bytes N]
"""

import argparse

import client_speed
import common
import http_speed
from common import drive, main, print_goal, print_table, ratio, remark, set_up, take_turns

SIZES = {16: "16 B", 1 << 10: "1 KiB", 64 << 10: "64 KiB", 1 << 20: "1 MiB"}
STDIO = {
    "mcp 2": "mcp 2",
    "python": "python sync",
    "ts 2": "ts 2",
    "node": "node",
    "rust": "rust",
}
# The fields that are compared in each place.
NAMES = {"stdio": tuple(STDIO), "HTTP": (*STDIO, "rmcp"), "clients": tuple(STDIO)[:-1]}
PEERS = {"python": "mcp 2", "node": "ts 2"}
# The expected ratios of calls per second, the first step towards them, by language and size.
GOALS = {("python", 64 << 10): (5, 3), ("python", 1 << 20): (3, 1.5), ("node", 64 << 10): (3, 1.5)}


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="1")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", default="4")
    parser.add_argument("--era", default="legacy", choices=("legacy", "modern"))
    parser.add_argument("--only", choices=NAMES)
    parser.add_argument("--bytes", type=int, choices=SIZES)
    options = parser.parse_args()
    here = set_up()
    common.COMMANDS["rust"] = [http_speed.RUST_SERVER, "stdio"]
    names = http_speed.available(here)
    for place in [options.only] if options.only else NAMES:
        sizes = [options.bytes] if options.bytes else [64 << 10] if place == "clients" else SIZES
        speeds = {}
        for size in sizes:
            jobs = {
                name: lambda place=place, name=name, size=size: once(place, name, size, options)
                for name in NAMES[place]
                if name in names
            }
            speeds[size] = take_turns(jobs, options.rounds)
        print_results(place, speeds, options)


def once(place, name, size, options):
    """Runs the calls of one server or client."""
    if place == "clients":
        return client_speed.once(name, [options.era, options.in_flight, options.seconds, str(size)])
    words = ["--era", options.era, "--seconds", options.seconds, "--in-flight", options.in_flight]
    words += ["--tool", "echo", "--text", str(size)]
    return drive(STDIO[name], *words) if place == "stdio" else http_speed.once(name, words)


def print_results(place, speeds, options):
    what = "clients over HTTP" if place == "clients" else f"servers over {place}"
    print(f"{what}, {options.era}, echo, {options.in_flight} in flight, medians of {options.rounds}")
    rows = [row for size, speed in speeds.items() for row in rows_of(size, speed, place)]
    print_table([place, "payload", "calls/s", "× mcp 2", "× ts 2", "CPU µs", "× mcp 2", "× ts 2"], rows)
    for (ours, size), (least, first) in GOALS.items():
        if size not in speeds:
            continue
        peer = PEERS[ours]
        times = ratio(*(speeds[size].get(name, {}).get("calls_per_second") for name in (ours, peer)))
        goal = f"{what}, {SIZES[size]}: {ours}, at least {least} × {peer}, at first {first} ×"
        print_goal(goal, times, lambda x, least=least: x >= least, " ×")
    print(flush=True)


def rows_of(size, speed, place):
    for name in NAMES[place]:
        if name not in speed:
            yield [name, remark(name)]
            continue
        run = speed[name]
        peers = [speed.get(peer, {}) for peer in PEERS.values()]
        faster = [ratio(run["calls_per_second"], peer.get("calls_per_second")) for peer in peers]
        cheaper = [ratio(peer.get("cpu_us"), run["cpu_us"]) for peer in peers]
        yield [
            name,
            SIZES[size],
            f"{run['calls_per_second']:,.0f}",
            *("?" if times is None else f"{times:.1f}" for times in faster),
            "?" if run["cpu_us"] is None else f"{run['cpu_us']:,.0f}",
            *("?" if times is None else f"{times:.1f}" for times in cheaper),
        ]


if __name__ == "__main__":
    main(bench)
