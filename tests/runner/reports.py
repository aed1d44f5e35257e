"""Reads the output of each test runner: how many tests passed, which failed, and how those are run again."""

import re
from dataclasses import dataclass, field
from typing import ClassVar

SKIPPED = re.compile(r"^skipped: (.+)$", re.M)


@dataclass
class Result:
    """The results of the tests of a stage."""

    passed: int = 0
    failed: int = 0
    # The reasons of the skipped tests, one for each.
    skipped: list = field(default_factory=list)
    # The names of the tests that failed, as far as they can be run again by name.
    names: list = field(default_factory=list)
    # The names of the tests that passed only when they ran again, alone.
    flaky: list = field(default_factory=list)


class Report:
    """The output of a command whose exit status is its only result."""

    totals: ClassVar = None

    def read(self, text, status):
        """Returns the result that an output tells. A stage that ran no test, and has no reason for that, has failed."""
        reasons = SKIPPED.findall(text)
        if self.totals is None:
            return Result(0 if status or reasons else 1, 1 if status else 0, reasons)
        counts = {"passed": 0, "failed": 0, "errors": 0, "skipped": 0}
        for found in re.finditer(self.totals, text, re.M):
            for key, value in found.groupdict().items():
                counts[key] += int(value or 0)
        failed = counts["failed"] + counts["errors"]
        passed, reasons = self.without_skipped(counts, reasons)
        if status or not (passed or failed or reasons):
            failed = max(failed, 1)
        # Where a failure has no name, such as a crash, running the others again would not tell whether all is well.
        names = self.names(text) if self.named(text) == failed else []
        return Result(passed, failed, reasons, names, self.flaky(text))

    def without_skipped(self, counts, reasons):
        """Returns the number of passed tests, and a reason for each skipped one."""
        return counts["passed"], reasons + ["no reason given"] * (counts["skipped"] - len(reasons))

    def names(self, text):
        """Returns the names of the tests that failed."""
        return []

    def named(self, text):
        """Returns the number of failures that the names stand for."""
        return len(self.names(text))

    def flaky(self, text):
        """Returns the names of the tests that the runner itself ran again, with success."""
        return []

    def again(self, command, name):
        """Returns the command that runs one of the failed tests again."""
        raise NotImplementedError

    def only(self, command, name):
        """Returns the command that runs the tests whose names contain a text."""
        return [*command, name]


class Pytest(Report):
    """The output of a command that begins with `pytest -q`."""

    totals = (
        r"^(?=.*\d (?:passed|failed|error|skipped))(?:(?P<failed>\d+) failed,? ?)?(?:(?P<passed>\d+) passed,? ?)?"
        r"(?:(?P<skipped>\d+) skipped,? ?)?(?:\d+ deselected,? ?)?(?:\d+ warnings?,? ?)?"
        r"(?:(?P<errors>\d+) errors? ?)?in "
    )

    def names(self, text):
        return list(dict.fromkeys(re.findall(r"^(?:FAILED|ERROR) (\S+?::.+?)(?: - .*)?$", text, re.M)))

    def again(self, command, name):
        return [*command[:2], name]

    def only(self, command, name):
        return [*command, "-k", name]


class Tap(Report):
    """The output of Node's test runner. Tests are run again by file and by the name of the outermost test."""

    totals = (
        r"^# pass (?P<passed>\d+)$|^# fail (?P<failed>\d+)$"
        r"|^# skipped (?P<skipped>\d+)$|^# cancelled (?P<errors>\d+)$"
    )
    failure = re.compile(r"^not ok \d+ - (?P<name>.*)\n  ---\n(?:  .*\n)*?  location: '(?P<file>.*?):\d+:\d+'$", re.M)

    def names(self, text):
        return [f"{found['file']} {found['name']}" for found in self.failure.finditer(text)]

    def named(self, text):
        # A test counts as failed when one inside it failed.
        return len(re.findall(r"^ *not ok ", text, re.M))

    def again(self, command, name):
        file, _, test = name.partition(" ")
        return [*self._options(command), f"--test-name-pattern=^{re.escape(test)}$", file]

    def only(self, command, name):
        options = self._options(command)
        return [*options, f"--test-name-pattern={re.escape(name)}", *command[len(options) :]]

    @staticmethod
    def _options(command):
        return [word for word in command if not str(word).endswith(".mjs")]


class Cargo(Report):
    """The output of `cargo test`, whose tests print the reason for which they are skipped, and pass."""

    totals = r"test result: \w+\. (?P<passed>\d+) passed; (?P<failed>\d+) failed; (?P<skipped>\d+) ignored"

    def without_skipped(self, counts, reasons):
        return counts["passed"] - len(reasons), reasons + ["ignored"] * counts["skipped"]

    def names(self, text):
        lists = re.findall(r"^failures:\n((?:    \S+\n)+)", text, re.M)
        return list(dict.fromkeys(name for found in lists for name in found.split()))

    def again(self, command, name):
        cargo = command[: command.index("--")] if "--" in command else command
        return [*cargo, "--", "--exact", name]

    def only(self, command, name):
        at = command.index("--") if "--" in command else len(command)
        return [*command[:at], name, *command[at:]]


class Suite(Report):
    """The output of a suite of this project. It runs failed tests again by itself, and says `flaky: NAME: REASON`."""

    def __init__(self, name, passed="passed"):
        self.totals = rf"^{name}: (?P<passed>\d+) {passed},.*?(?P<failed>\d+) failed(?:, (?P<skipped>\d+) skipped)?"

    def flaky(self, text):
        return re.findall(r"^\s*flaky: (.+)$", text, re.M)
