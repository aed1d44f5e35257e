"""Keeps many calls of a client pending for some seconds: shared by the Python clients."""

import asyncio
import json
import sys
import time


def command_line():
    """Returns URL, revision or era, number of concurrent calls, seconds, and the arguments of the calls."""
    url, era, in_flight, seconds, *size = sys.argv[1:]
    text = "x" * int(size[0]) if size else "hello, world 16!"
    return url, era, int(in_flight), float(seconds), {"text": text}


async def keep_calling(call, in_flight, seconds):
    """Runs `call()` concurrently for some seconds after a warm-up of one second; prints the rate."""
    for practice in (True, False):
        begun = time.perf_counter()
        until = begun + (1 if practice else seconds)
        cpu = time.process_time()
        done = sum(await asyncio.gather(*(_call_until(call, until) for _ in range(in_flight))))
        took = time.perf_counter() - begun
        spent = time.process_time() - cpu
    print(json.dumps({"calls_per_second": done / took, "cpu_us": spent / done * 1e6}))


async def _call_until(call, until):
    done = 0
    while time.perf_counter() < until:
        await call()
        done += 1
    return done
