"""The cost of open legacy sessions: their memory, opening one more, and a call in one of them."""

import statistics
import time
from contextlib import ExitStack

from scale_series import Metric, Series
from scale_server import Server, one_processor
from scale_tools import ROUNDS, TEXT, call_in_turns

SIZES = [1, 10, 100, 1_000, 10_000]
MEMORY = Metric("sessions-memory", "Memory of open sessions", "sessions", "memory")
OPEN = Metric("sessions-open", "Time to open one more session", "sessions", "time", grows=False)
CALL = Metric("sessions-call", "Time of a tools/call, by open sessions", "sessions", "time", grows=False)
# Sessions that are opened and ended, one after the other: before memory is measured, and in each round of openings.
WARM_UP = 100
OPENINGS = 5


def measure(name, quick):
    sizes = SIZES[:4] if quick else SIZES
    memory, servers, requests, opening = [], [], [], [[] for _ in sizes]
    with one_processor(), ExitStack() as stack:
        for size in sizes:
            server = stack.enter_context(Server(name, "http", http={"max_sessions": size + 2}))
            open_and_close(server.client)
            before = server.resident()
            sessions = [server.client.open_session() for _ in range(size)]
            memory.append(server.resident() - before)
            echo = {"name": "echo", "arguments": {"text": TEXT}}
            servers.append(server)
            requests.append(server.client.prepare_in_session(sessions[0], "tools/call", echo))
        for _ in range(OPENINGS):
            for one, times in zip(servers, opening, strict=True):
                times += open_and_close(one.client)
        calls, _ = call_in_turns(servers, requests, 5 if quick else ROUNDS)
    return [
        Series(MEMORY, name, sizes, memory),
        Series(OPEN, name, sizes, [statistics.median(times) for times in opening]),
        Series(CALL, name, sizes, [statistics.median(one) for one in calls]),
    ]


def open_and_close(client):
    """Opens sessions and ends each at once; returns the seconds of opening."""
    times = []
    for _ in range(WARM_UP):
        start = time.perf_counter()
        session = client.open_session()
        times.append(time.perf_counter() - start)
        client.close_session(session)
    return times
