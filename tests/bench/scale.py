"""Measures how costs grow with tools, sessions, listen streams, calls in flight and payloads, for each language.

python3 tests/bench/scale.py [--quick] [--server python|node|rust] [--docs FOLDER] [DIMENSION…]

A run of everything writes docs/scale.md and docs/scale/*.svg; any other run writes them into --docs only.
"""

import argparse
import sys
from pathlib import Path

import scale_flight
import scale_payload
import scale_sessions
import scale_streams
import scale_tools
from common import ROOT, Broken, broken, main, print_table
from listening import allow_many_files
from scale_page import HEAD, goals, page_and_charts, rows
from scale_server import COMMANDS, is_built

DIMENSIONS = {
    "tools": scale_tools,
    "sessions": scale_sessions,
    "streams": scale_streams,
    "flight": scale_flight,
    "payload": scale_payload,
}


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes and few rounds")
    parser.add_argument("--server", action="append", type=str.capitalize, choices=list(COMMANDS), help="default: all")
    parser.add_argument("--docs", type=Path, help="the folder that the page and its charts are written to")
    parser.add_argument("dimensions", nargs="*", default=list(DIMENSIONS), help=", ".join(DIMENSIONS))
    options = parser.parse_args()
    if unknown := set(options.dimensions) - set(DIMENSIONS):
        parser.error(f"no such dimension: {', '.join(unknown)}")
    names = options.server or list(COMMANDS)
    if missing := [name for name in names if not is_built(name)]:
        raise Broken(f"not built: {', '.join(missing)}; run make build-bench")
    if not options.quick and allow_many_files() < 6_000:
        raise Broken("5,000 streams need as many file descriptors; raise the limit with ulimit -n")

    found = {}
    for dimension in options.dimensions:
        found[dimension] = measure(dimension, names, options.quick)
        for series in found[dimension]:
            print(series[0].metric.title)
            print_table(HEAD, [row for one in series for row in rows(one)])
            for one in series:
                for goal, verdict in goals(one):
                    print(f"goal: {one.server}: {goal}: {verdict}")
            print()
    is_whole = not options.quick and not broken and len(names) == len(COMMANDS) and len(found) == len(DIMENSIONS)
    folder = options.docs or (ROOT / "docs" if is_whole else None)
    if folder:
        write(folder, found)


def measure(dimension, names, quick):
    """Returns the series of each metric, with those of the servers that did not break."""
    by_metric = {}
    for name in names:
        print(f"{dimension}: {name} …", file=sys.stderr)
        try:
            for one in DIMENSIONS[dimension].measure(name, quick):
                by_metric.setdefault(one.metric, []).append(one)
        except Broken as why:
            broken[f"{name} with {dimension}"] = str(why)
    return list(by_metric.values())


def write(folder, found):
    page, charts = page_and_charts(found)
    (folder / "scale").mkdir(parents=True, exist_ok=True)
    (folder / "scale.md").write_text(page, encoding="utf-8")
    for name, chart in charts.items():
        (folder / "scale" / name).write_text(chart, encoding="utf-8")
    print(f"written: {folder / 'scale.md'} and {len(charts)} charts")


if __name__ == "__main__":
    main(bench)
