"""Measures the time until a spawned server answers, for Gudgeon and the official SDKs, and the cost of the import.

python3 tests/bench/coldstart.py [--rounds 3]
"""

import argparse
import json
import statistics
import subprocess
import time

from common import (
    OURS_PYTHON,
    ROOT,
    Broken,
    drive,
    main,
    print_goal,
    print_table,
    python_is_built,
    ratio,
    remark,
    set_up,
    take_turns,
)

SERVERS = ("mcp 2", "python sync", "python async", "ts 2", "node")
STARTS = 5  # in each round
IMPORTS = 11
MUST_NOT_LOAD = ("asyncio", "pydantic", "msgspec")


def bench():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    here = set_up()
    if python_is_built():
        compile_bytecode()
    jobs = {name: lambda name=name: drive(name, "--coldstart", str(STARTS)) for name in SERVERS if name in here}
    starts = take_turns(jobs, rounds)

    print(f"spawn to first reply over stdio, ms, medians of {rounds} times {STARTS}")
    keys = ("median_ms", "min_ms", "max_ms")
    print_table(
        ["server", "median", "min", "max"],
        [
            [name, *(f"{starts[name][key]:.0f}" for key in keys)] if name in starts else [name, remark(name)]
            for name in SERVERS
        ],
    )
    cost = import_cost() if python_is_built() else None

    def share(theirs, ours):
        return ratio(*(starts.get(name, {}).get("median_ms") for name in (theirs, ours)))

    for name in ("python sync", "python async"):
        print_goal(f"{name} at least 10 × sooner than mcp 2", share("mcp 2", name), lambda x: x >= 10, " ×")
    print_goal("Node at least 2 × sooner than ts 2", share("ts 2", "node"), lambda x: x >= 2, " ×")
    print_goal("`import gudgeon` at most 3 × a bare interpreter", cost, lambda x: x <= 3, " ×")


def compile_bytecode():
    """Compiles our package, as pip does on installation; with PYTHONDONTWRITEBYTECODE, the interpreter never does."""
    subprocess.run([OURS_PYTHON, "-m", "compileall", "-q", ROOT / "bindings-python/python"], check=True)


def import_cost():
    """Prints the time and the modules of the import; returns its time relative to a bare start."""
    took = {"pass": [], "import gudgeon": []}
    for _ in range(IMPORTS):
        for code, times in took.items():
            start = time.perf_counter()
            subprocess.run([OURS_PYTHON, "-c", code], check=True)
            times.append(time.perf_counter() - start)
    bare, full = (statistics.median(times) * 1e3 for times in took.values())
    loaded = modules("import gudgeon") - modules("pass")
    print(
        f"import gudgeon: {full:.1f} ms, a bare interpreter: {bare:.1f} ms (medians of {IMPORTS}, {OURS_PYTHON.name})"
    )
    print(f"it loads {len(loaded)} modules: {' '.join(sorted(loaded))}\n")
    wrong = [name for name in MUST_NOT_LOAD if name in loaded]
    if wrong:
        raise Broken(f"`import gudgeon` loads {', '.join(wrong)}; import them where they are used")
    return full / bare


def modules(code):
    code += "\nimport sys; names = list(sys.modules)\nimport json; print(json.dumps(names))"
    done = subprocess.run([OURS_PYTHON, "-c", code], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


if __name__ == "__main__":
    main(bench)
