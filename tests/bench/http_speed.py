"""Measures calls per second over HTTP at 16 connections, for Gudgeon and the official SDKs, in each era, and at one
connection for Node.

`hyper` reads requests and sends the same response to each: what remains is the cost of HTTP and of the driver, which
shares the processors with the server.

python3 tests/bench/http_speed.py [--seconds 2] [--rounds 3] [--in-flight 16] [--era legacy|modern]
"""

import argparse
import subprocess

from common import ROOT, main, print_goal, print_table, ratio, remark, set_up, take_turns
from listening import COMMANDS, HYPER_SERVER, RMCP_SERVER, RUST_SERVER, Listening

ECHO = ["--tool", "echo", "--arguments", '{"text":"hello, world 16!"}']
PEERS = ("mcp 2", "ts 2", "rmcp")
# Gudgeon's server, the server to compare with, and the expected ratio of calls per second; by connections.
GOALS = {
    16: (
        ("python", "mcp 2", 60),
        ("python async", "mcp 2", 30),
        ("python", "rmcp", 2),
        ("node", "ts 2", 25),
        ("rust", "rmcp", 3),
        ("rust", "rmcp", 4),
    ),
    1: (("node", "ts 2", 4),),
}
ERAS = ("legacy", "modern")


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", default="2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, help="connections; default: 16 for all servers, 1 for Node's")
    parser.add_argument("--era", choices=ERAS)
    options = parser.parse_args()
    names = available(set_up())
    for in_flight in [options.in_flight] if options.in_flight else GOALS:
        measured = [name for name in names if in_flight == options.in_flight or is_compared(name, in_flight)]
        speeds = {}
        for era in [options.era] if options.era else ERAS:
            words = ["--era", era, "--seconds", options.seconds, "--in-flight", str(in_flight), *ECHO]
            jobs = {name: lambda name=name, words=words: once(name, words) for name in measured}
            speeds[era] = take_turns(jobs, options.rounds)
        print_results(in_flight, speeds, options.rounds)


def is_compared(name, in_flight):
    """Returns whether a server is measured with this number of connections."""
    return in_flight != 1 or any(name in goal for goal in GOALS[1])


def print_results(in_flight, speeds, rounds):
    print(f"HTTP, echo of 16 bytes, connections: {in_flight}; medians of {rounds}")
    head = ["server", "era", "calls/s", *(f"× {peer}" for peer in PEERS)]
    names = [name for name in COMMANDS if is_compared(name, in_flight)]
    rows = [row for era in speeds for row in rows_of(era, speeds[era], names)]
    print_table([*head, "p50 µs", "p99 µs", "max µs", "CPU µs", "RSS MB"], rows)
    for era, speed in speeds.items():
        print_goals(era, in_flight, speed)
    print()


def available(here):
    """Returns the names of the runnable servers among those that `set_up` found."""
    command = ["cargo", "build", "--release", "--quiet", "--target-dir", ROOT / "target"]
    subprocess.run(command, check=False, cwd=ROOT / "tests/bench/peers")
    built = {name: name in here for name in ("mcp 2", "python async", "ts 2", "node")}
    built["python"] = "python sync" in here
    built |= {"rmcp": RMCP_SERVER.is_file(), "rust": RUST_SERVER.is_file(), "hyper": HYPER_SERVER.is_file()}
    return [name for name in COMMANDS if built[name]]


def once(name, words):
    with Listening(name) as server:
        return server.drive(*words)


def rows_of(era, speed, names):
    for name in names:
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


def print_goals(era, in_flight, speed):
    def times(ours, theirs):
        return ratio(*(speed.get(name, {}).get("calls_per_second") for name in (ours, theirs)))

    for ours, theirs, least in GOALS.get(in_flight, ()):
        goal = f"{era}, {in_flight} connections: {ours}, at least {least} × {theirs}"
        print_goal(goal, times(ours, theirs), lambda x, least=least: x >= least, " ×")
    if share := times("rust", "hyper"):
        print(f"{era}, {in_flight} connections: rust has {share:.0%} of the throughput of bare hyper")


if __name__ == "__main__":
    main(bench)
