"""The loop of a client program in Python: `jobs.py` is for official and for this project's clients."""

import asyncio
import inspect
import json
import sys
import traceback


def perform_all(perform):
    """Calls `perform(job)`, which may be a coroutine function, for each job of the standard input."""
    for line in sys.stdin:
        done = True
        try:
            performed = perform(json.loads(line))
            if inspect.iscoroutine(performed):
                asyncio.run(performed)
        except Exception:
            traceback.print_exc()
            done = False
        print_line({"done": done})


def print_line(line):
    print(json.dumps(line), flush=True)
