"""Runs the selected stages, several at a time, and sums up their results."""

import os
import re
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from runner.reports import Result
from runner.stages import CHECKS, PREPARATIONS, QUICK, ROOT, TESTS

LOGS = ROOT / "target/test-logs"
# The beginning of a failure report of TAP, cargo and this project's suites; pytest reports failures at the end.
FAILURE = re.compile(r"not ok |failures:$|FAILED? |  .+ FAILED")
ALLOWED_SKIPS = ("spec schemas not found", "shared api not found", "other versions")
# A stage in which more tests fail has not failed by chance.
MOST_AGAIN = 12
# Most tests wait for processes most of the time.
TEST_STAGES_AT_ONCE = 2
# Linking the packages has one thread for a long time.
BACKGROUND_AT_ONCE = 3
# Seconds; several times what the longest stage takes beside others.
LIMIT = 45 * 60


class Run:
    """The selected stages and their results."""

    def __init__(self, chosen, largest_set, test, in_ci):
        def selected(stages):
            return [stage for stage in stages if (stage in chosen if chosen else stage.set <= largest_set)]

        self.tests, self.checks = selected(TESTS), selected(CHECKS)
        # The user waits for chosen or quick stages, and has built what they need.
        self.builds = not chosen and largest_set > QUICK
        self.preparations = selected(PREPARATIONS) if self.builds else []
        # The preparations that are over. Those that were not selected count as such.
        self.prepared = {stage.name for stage in PREPARATIONS} - {stage.name for stage in self.preparations}
        self.changed = threading.Condition()
        self.test_name, self.in_ci = test, in_ci
        self.ends = False
        self.total = Result()
        self.failures, self.skips, self.flaky = [], [], []
        # Stages with failed tests that run again when all others have ended, with their results and outputs.
        self.suspects = []
        self.lock = threading.Lock()

    def run(self):
        """Runs everything; returns the exit status."""
        start = time.monotonic()
        background = [*self.preparations, *self.checks]
        with ThreadPoolExecutor(BACKGROUND_AT_ONCE + TEST_STAGES_AT_ONCE) as pool:
            try:
                running = [pool.submit(self._work, background) for _ in range(BACKGROUND_AT_ONCE)]
                running += [pool.submit(self._work, self.tests) for _ in range(TEST_STAGES_AT_ONCE)]
                for each in running:
                    each.result()
            finally:
                self._end()
        for stage, result, text in self.suspects:
            self._run_again(stage, result, text)
        return self._sum_up(time.monotonic() - start)

    def _work(self, stages):
        """Takes stages from a list and runs them, until none is left."""
        while stage := self._next(stages):
            if stage in self.preparations:
                self._prepare(stage)
            else:
                self._run(stage)

    def _next(self, stages):
        """Returns the first stage whose preparations are over, and None at the end; waits while there is none."""
        with self.changed:
            while stages and not self.ends:
                for at, stage in enumerate(stages):
                    if self.prepared.issuperset(stage.needs):
                        return stages.pop(at)
                self.changed.wait()
        return None

    def _end(self):
        with self.changed:
            self.ends = True
            self.changed.notify_all()

    def _prepare(self, stage):
        try:
            status, text, took = output_of(stage.name, stage.command, stage.nice)
            with self.lock:
                print(f"{stage.name:22}{'failed' if status else 'done'}  ({took})", flush=True)
                if status:
                    print(excerpt(text), flush=True)
                    self.total.failed += 1
                    self.failures.append((stage.name, text))
            if status:
                self._end()
        finally:
            with self.changed:
                self.prepared.add(stage.name)
                self.changed.notify_all()

    def _run(self, stage):
        command = stage.report.only(stage.command, self.test_name) if self.test_name else stage.command
        # Someone waits for the checks, unless they run beside tests.
        nice = stage.nice if self.builds else 0
        status, text, took = output_of(stage.name, command, nice)
        result = stage.report.read(text, status)
        with self.lock:
            if stage.real and 0 < len(result.names) <= MOST_AGAIN:
                print(f"{stage.name:22}{result.failed} failed and will run again, alone  ({took})", flush=True)
                self.suspects.append((stage, result, text))
            else:
                self._add(stage, result, text, took)

    def _run_again(self, stage, result, output):
        """Runs each failed test of a stage again. Those that pass become flaky ones."""
        start = time.monotonic()
        for at, name in enumerate(result.names):
            status, text, _ = output_of(f"{stage.name} again {at + 1}", stage.report.again(stage.command, name))
            output += text
            second = stage.report.read(text, status)
            if second.passed and not second.failed:
                result.flaky.append(name)
        remaining = 0 if result.flaky == result.names else max(result.failed - len(result.flaky), 1)
        result.passed, result.failed = result.passed + result.failed - remaining, remaining
        self._add(stage, result, output, f"{time.monotonic() - start:.0f} s for the second try")

    def _add(self, stage, result, text, took):
        skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
        flaky = f", {len(result.flaky)} flaky" if result.flaky else ""
        print(f"{stage.name:22}{result.passed:5} passed, {result.failed} failed{skipped}{flaky}  ({took})", flush=True)
        if result.failed:
            print(excerpt(text), flush=True)
            self.failures.append((stage.name, text))
        self.total.passed += result.passed
        self.total.failed += result.failed
        self.skips += [(stage.name, reason) for reason in result.skipped]
        self.flaky += [(stage.name, name) for name in result.flaky]

    def _sum_up(self, seconds):
        """Prints failures again, shorter, then the totals. Returns the exit status."""
        for name, text in self.failures:
            print(f"failed: {name}", *excerpt(text).splitlines()[-12:], sep="\n  ")
        for name, reason in self.skips:
            print(f"skipped in {name}: {reason}")
            if self.in_ci and not reason.startswith(ALLOWED_SKIPS):
                print("  counted as failed: in CI, this is not a reason to skip a test")
                self.total.failed += 1
        print(f"took {seconds / 60:.1f} min")
        print(f"flaky: {len(self.flaky)}", *(f"{stage}: {name}" for stage, name in self.flaky), sep="\n  ")
        skipped = f", {len(self.skips)} skipped" if self.skips else ""
        print(f"{self.total.passed} passed, {self.total.failed} failed{skipped}")
        return 1 if self.total.failed else 0


def output_of(name, command, nice=0, limit=LIMIT):
    """Runs a command; returns its exit status, its output, and the elapsed and the CPU time as a text.

    It is ended after `limit` seconds: a test that waits forever must not keep the failures of others from being told.
    """
    log = LOGS / f"{name.replace(' ', '-')}.log"
    words = [str(word) for word in ["nice", "-n", nice, *command]]
    start = time.monotonic()
    with (
        log.open("wb") as output,
        subprocess.Popen(words, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT) as process,
    ):
        ending = threading.Timer(limit, os.kill, (process.pid, signal.SIGTERM))
        ending.daemon = True
        ending.start()
        # Its usage includes that of the processes that it has waited for.
        _, status, usage = os.wait4(process.pid, 0)
        ending.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode == -signal.SIGTERM:
            output.write(f"\nended after {limit / 60:.0f} min, because it did not end by itself\n".encode())
    took = f"{time.monotonic() - start:.0f} s, CPU {usage.ru_utime + usage.ru_stime:.0f} s"
    return process.returncode, log.read_text(errors="replace"), took


def excerpt(text):
    """Returns the first failure reports and the end of the output."""
    lines = text.splitlines()
    places = [at for at, line in enumerate(lines[:-60]) if FAILURE.match(line)]
    return "\n".join([line for at in places[:5] for line in lines[at : at + 30]] + lines[-60:])
