"""Checks for leaks: 200,000 calls over HTTP at 16 connections, with memory measured after every 20,000.

python3 tests/bench/memory.py [--calls 200000] [--era legacy|modern] [SERVER…]
"""

import argparse
import os

from common import Broken, broken, main, print_goal, print_table, remark, set_up
from http_speed import available
from listening import OURS, Listening

STEPS = 10
ECHO = ["--tool", "echo", "--arguments", '{"text":"hello, world 16!"}', "--in-flight", "16"]
FLAT = 5  # per cent


# V8's young generation grows up to 3 × 16 MB for any server; a small one makes leaks visible.
YOUNG = "--max-semi-space-size=4"


def bench():
    os.environ["NODE_OPTIONS"] = YOUNG
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=200_000)
    parser.add_argument("--era", default="modern", choices=("legacy", "modern"))
    parser.add_argument("servers", nargs="*", default=OURS, help=", ".join(OURS))
    options = parser.parse_args()
    if unknown := set(options.servers) - set(OURS):
        parser.error(f"no server of ours: {', '.join(unknown)}")
    names = [name for name in available(set_up()) if name in options.servers]
    weights = {}
    for name in names:
        try:
            weights[name] = weigh(name, options)
        except Broken as why:
            broken[name] = str(why)

    step = options.calls // STEPS
    print(f"memory in MB after each {step:,} of {options.calls:,} calls, {options.era}, after a collection")
    rows = [
        [name, *(f"{one / 1e6:.1f}" for one in weights[name])] if name in weights else [name, remark(name)]
        for name in names
    ]
    print_table(["server", *(f"{step * (at + 1) // 1000:,}k" for at in range(STEPS))], rows)
    for name in names:
        print_goal(
            f"{name}: within ±{FLAT} % after the first {step:,}", drift(weights.get(name)), lambda x: x <= FLAT, " %"
        )


def weigh(name, options):
    words = ["--era", options.era, "--calls", str(options.calls // STEPS), *ECHO]
    with Listening(name) as server:
        return [server.resident() for _ in server.drive_in_lots(STEPS, *words)]


def drift(weights):
    """Returns the largest deviation from the first value, in per cent."""
    return None if weights is None else max(abs(one - weights[0]) for one in weights) / weights[0] * 100


if __name__ == "__main__":
    main(bench)
