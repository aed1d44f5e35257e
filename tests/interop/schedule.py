"""Runs tasks concurrently, but none beside another that uses the same client program or the same server."""

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor


def run_all(tasks, at_once):
    """Runs `task.run()` of each task; `task.uses` are the things that it uses alone."""
    counts = Counter(thing for task in tasks for thing in task.uses)
    # What is used most takes longest, because its tasks wait for each other.
    waiting = sorted(tasks, key=lambda task: -max(counts[thing] for thing in task.uses))
    used, changed = set(), threading.Condition()

    def take():
        """Returns the next task whose things are free; None if no task is left."""
        while waiting:
            for task in waiting:
                if used.isdisjoint(task.uses):
                    waiting.remove(task)
                    used.update(task.uses)
                    return task
            changed.wait()
        return None

    def work():
        while True:
            with changed:
                task = take()
            if task is None:
                return
            try:
                task.run()
            finally:
                with changed:
                    used.difference_update(task.uses)
                    changed.notify_all()

    with ThreadPoolExecutor(at_once) as pool:
        for worker in [pool.submit(work) for _ in range(at_once)]:
            worker.result()
