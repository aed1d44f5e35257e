"""Runs the tests, stage by stage; the last line is `<n> passed, <n> failed[, <n> skipped]`.

    python3 tests/run.py [--quick | --all] [STAGE]… [--test NAME]

Without names of stages everything is set up and built first. `lint` stands for all static checks. `--test` runs the
tests of the chosen stage whose names contain a text. Two test stages run at a time; preparations and static
checks run beside them at low priority. Each stage prints one line, and its output is written to target/test-logs/ and
shown if the stage fails.

A test with real processes, sockets or threads that fails is run again, alone. If it passes, the run passes, and its
last lines say `flaky: N` and the names. In CI, a skipped test counts as a failure unless the reason is a missing folder
of shared files, or that instructions were counted with other versions of compilers.
"""

import argparse
import os
import signal
import sys

from runner.running import LOGS, Run
from runner.stages import ALL, CHECKS, QUICK, TEST, known


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sets = parser.add_mutually_exclusive_group()
    sets.add_argument("--quick", action="store_const", dest="set", const=QUICK, help="only tests that need no build")
    sets.add_argument("--all", action="store_const", dest="set", const=ALL, help="also what is run before a release")
    parser.add_argument("--test", metavar="NAME", help="only tests whose names contain this text")
    parser.add_argument("stages", nargs="*", metavar="STAGE", help="only these stages; nothing is built before")
    options = parser.parse_args()
    stages = known()
    names = [
        name for word in options.stages for name in ([check.name for check in CHECKS] if word == "lint" else [word])
    ]
    if unknown := [name for name in names if name not in stages]:
        parser.error(f"unknown stage: {', '.join(unknown)}; the stages are {', '.join(['lint', *stages])}")
    if options.test and len(names) != 1:
        parser.error("--test needs the name of one stage, such as python, node or rust")
    LOGS.mkdir(parents=True, exist_ok=True)
    # A shell ignores Ctrl-C for what it starts in the background, and programs inherit that: tests send this signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = [stages[name] for name in names]
    run = Run(chosen, TEST if options.set is None else options.set, options.test, in_ci=bool(os.environ.get("CI")))
    return run.run()


if __name__ == "__main__":
    sys.exit(main())
