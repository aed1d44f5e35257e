"""The cost of registered tools: at the start, in `tools/list`, and in an ordinary call of one of them."""

import random
import re
import statistics
import time
from contextlib import ExitStack

from scale_series import Metric, Series
from scale_server import Server, one_processor

SIZES = [1, 10, 100, 1_000, 10_000]
START = Metric("tools-start", "Time from start to first reply, by registered tools", "tools", "time", beyond_first=True)
LIST_FIRST = Metric("tools-list-first", "Time of the first tools/list, all pages", "tools", "time")
LIST = Metric("tools-list", "Time of a later tools/list, all pages", "tools", "time")
BYTES = Metric("tools-list-bytes", "Bytes of tools/list, all pages", "tools", "memory")
TIME = Metric("tools-call", "Time of a tools/call, by registered tools", "tools", "time", grows=False)
WORK = Metric(
    "tools-call-processor",
    "Processor time of a server for a tools/call, by registered tools",
    "tools",
    "time",
    most_above=(1_000, 0.02),
    grows=False,
)
SPAWNS = 5
# Processes of each size that are compared to see what 1,000 tools cost a call.
COMPARED = 30
LISTINGS = 5
ROUNDS = 40
CALLS = 200
WARM_UP = 5_000
TEXT = "hello, world 16!"


def measure(name, quick):
    sizes = SIZES[:4] if quick else SIZES
    found = {metric: {size: [] for size in sizes} for metric in (START, LIST_FIRST, LIST, BYTES, TIME, WORK)}
    for _ in range(1 if quick else SPAWNS):
        with one_processor(), ExitStack() as stack:
            servers = [stack.enter_context(Server(name, "stdio", tools=size)) for size in sizes]
            for size, server in zip(sizes, servers, strict=True):
                found[START][size].append(server.seconds_to_start)
                took, length = list_all(server.client)
                found[LIST_FIRST][size].append(took)
                found[BYTES][size].append(length)
                found[LIST][size].append(statistics.median(list_all(server.client)[0] for _ in range(LISTINGS)))
            for metric, calls in zip((TIME, WORK), echo_in_turns(servers, 5 if quick else ROUNDS), strict=True):
                for size, one in zip(sizes, calls, strict=True):
                    found[metric][size].append(statistics.median(one))
    result = {
        metric: Series(metric, name, sizes, [statistics.median(costs[size]) for size in sizes])
        for metric, costs in found.items()
    }
    result[WORK].above, result[WORK].noise = compare(name, WORK.most_above[0], 3 if quick else COMPARED)
    return list(result.values())


def compare(name, size, spawns):
    """Returns the share by which a call costs more with so many tools than with one, and with one in another server.

    Both are medians over many processes, because processes with the same tools differ by a few per cent."""
    shares, noise = [], []
    for _ in range(spawns):
        with one_processor(), ExitStack() as stack:
            servers = [stack.enter_context(Server(name, "stdio", tools=one)) for one in (1, size, 1)]
            _, work = echo_in_turns(servers, 15)
        first, larger, last = (statistics.median(one) for one in work)
        shares.append(larger / ((first + last) / 2) - 1)
        noise.append(last / first - 1)
    return statistics.median(shares), statistics.median(noise)


def echo_in_turns(servers, rounds):
    request = servers[0].client.prepare_call("echo", text=TEXT)
    return call_in_turns(servers, [request] * len(servers), rounds)


def list_all(client):
    """Lists all tools; returns the seconds and the bytes of the replies."""
    start, length, params = time.perf_counter(), 0, {}
    while True:
        reply = client.ask("tools/list", params)
        length += len(reply)
        if not (cursor := re.search(rb'"nextCursor":"([^"]+)"', reply)):
            return time.perf_counter() - start, length
        params = {"cursor": cursor[1].decode()}


def call_in_turns(servers, requests, rounds):
    """Makes calls of each server; returns, by server, the rounds' seconds of a call and of processor time for a call.

    Each round makes all calls in another order, so that neither load nor the calls before favour one of them."""
    times, work = [[] for _ in servers], [[] for _ in servers]
    turns = list(zip(servers, requests, times, work, strict=True))
    for server, request, *_ in turns:
        time_of_calls(server.client, request, WARM_UP)
    order = random.Random(0)
    for _ in range(rounds):
        order.shuffle(turns)
        for server, request, found, worked in turns:
            # The first calls find the caches filled by another server.
            time_of_calls(server.client, request, CALLS // 10)
            before = server.processor_seconds()
            found.append(time_of_calls(server.client, request, CALLS))
            worked.append((server.processor_seconds() - before) / CALLS)
    return times, work


def time_of_calls(client, request, count):
    """Returns the median of the seconds of calls, one after the other."""
    times = []
    for _ in range(count):
        start = time.perf_counter()
        client.exchange(request)
        times.append(time.perf_counter() - start)
    return statistics.median(times)
