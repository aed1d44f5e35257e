"""The cost of a payload: the time in which a string is sent to a tool and comes back."""

import statistics
import time
from contextlib import ExitStack

from common import Broken
from scale_series import Metric, Series
from scale_server import Server, one_processor

SIZES = [16, 1 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20]
TRANSPORTS = {"stdio": "stdio", "http": "HTTP"}
TIME = {
    transport: Metric(
        f"payload-{transport}", f"Time of an echo over {called}, by payload", "payload", "time", unit=1 << 20
    )
    for transport, called in TRANSPORTS.items()
}
# By default a message of 16 MiB and the JSON around it is refused, and an HTTP body of more than 4 MiB.
LIMITS = {"server": {"max_message": 64 << 20}, "http": {"max_body": 64 << 20}}
ROUNDS = 5
# Bytes and calls of one round.
BYTES, CALLS = 32 << 20, 200


def measure(name, quick):
    sizes = SIZES[:4] if quick else SIZES
    times = {transport: {size: [] for size in sizes} for transport in TRANSPORTS}
    with one_processor(), ExitStack() as stack:
        clients = {transport: stack.enter_context(Server(name, transport, **LIMITS)).client for transport in TRANSPORTS}
        for _ in range(ROUNDS):
            for size in sizes:
                for transport, client in clients.items():
                    count = max(1, min(CALLS, BYTES // size // len(sizes)))
                    times[transport][size].append(time_of_echo(client, size, count))
    return [
        Series(TIME[transport], name, sizes, [statistics.median(found[size]) for size in sizes])
        for transport, found in times.items()
    ]


def time_of_echo(client, size, count):
    """Returns the median of the seconds of calls, one after the other."""
    request, times = client.prepare_call("echo", text="x" * size), []
    for _ in range(count):
        start = time.perf_counter()
        reply = client.exchange(request)
        times.append(time.perf_counter() - start)
        if len(reply) < size:
            raise Broken(f"a payload of {size} bytes came back in {len(reply)}")
    return statistics.median(times)
