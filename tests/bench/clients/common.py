"""Keeps many calls of one client in flight for some seconds: common to the clients in Python."""

import asyncio
import json
import sys
import time

ARGUMENTS = {"text": "hello, world 16!"}


def command_line():
    """URL, revision or era, calls in flight, seconds."""
    url, era, in_flight, seconds = sys.argv[1:]
    return url, era, int(in_flight), float(seconds)


async def keep_calling(call, in_flight, seconds):
    """Awaits `call()` as often as the seconds allow, that many at once, after a second of practice; prints the rate."""
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
