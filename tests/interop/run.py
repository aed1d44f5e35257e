"""Runs official clients against this project's servers, and its clients against official and published servers.

    python3 tests/interop/run.py [--ours | --official] [--details] [TEXT]…

Prints a matrix. Texts select pairs whose `client, transport, era → server` line contains them. `--ours` has all pairs
of this project's clients and servers instead, `--official` official clients with official and published servers, to
validate this harness. `--details` prints each failed check.
"""

import argparse
import contextlib
import sys

import peers
import protected
from pairs import pairs
from programs import Program
from schedule import run_all

AT_ONCE = 5


class Peers:
    """Client programs and listening servers, which start once, and the last cell that used each."""

    def __init__(self):
        self.programs, self.servers = {}, {}

    def meet(self, cell):
        """Runs a cell with its client program and its server."""
        program, _ = self.programs.setdefault(tuple(cell.command), (Program(cell.command), cell))
        self.programs[tuple(cell.command)] = program, cell
        server = None
        if cell.shared_by is not None:
            server, _ = self.servers.setdefault(cell.shared_by, (cell.new_server(), cell))
            self.servers[cell.shared_by] = server, cell
        cell.meet(program, server)

    def close(self):
        """Ends all; one that does not end well is a failure of the last cell that used it."""
        for what, used in (("exit", self.programs), ("server", self.servers)):
            for one, cell in used.values():
                if wrong := one.close():
                    cell.failures[what] = wrong


class Task:
    """A cell to run while nothing else uses its client program and its server."""

    def __init__(self, cell, running):
        self.cell, self.running = cell, running
        self.uses = [use for use in (("client", *cell.command), cell.shared_by) if use]

    def run(self):
        self.running.meet(self.cell)


def is_chosen(cell, texts):
    return all(text in cell.title for text in texts)


def run_cells(cells):
    """Runs cells; one that fails is run again, alone. Returns those that passed only then, with the first reasons."""
    meet_all(cells)
    flaky = []
    for cell in [cell for cell in cells if cell.failures]:
        first = cell.report()
        cell.failures = {}
        meet_all([cell])
        if not cell.failures:
            flaky.append((cell, first))
    return flaky


def meet_all(cells):
    running = Peers()
    try:
        run_all([Task(cell, running) for cell in cells], AT_ONCE)
    finally:
        running.close()


def print_matrix(done):
    for columns in _groups(done):
        rows = list(dict.fromkeys(pair.row for pair in done if pair.column in columns))
        cells = {(pair.row, pair.column): pair.cell for pair in done}
        table = [["client", *columns]] + [[row, *(cells.get((row, column), "") for column in columns)] for row in rows]
        widths = [max(len(line[at]) for line in table) for at in range(len(columns) + 1)]
        for line in table:
            print("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip())
        print()


def _groups(done):
    """Groups the pairs into one table each for own, official and published servers."""
    groups = {}
    for pair in done:
        groups.setdefault(pair.column.split()[0], {})[pair.column] = None
    return [list(columns) for columns in groups.values()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_mutually_exclusive_group()
    for kind in ("ours", "official"):
        kinds.add_argument(f"--{kind}", action="store_const", dest="kind", const=kind, default="all")
    parser.add_argument("--details", action="store_true")
    parser.add_argument("texts", nargs="*", metavar="TEXT")
    options = parser.parse_args()
    peers.set_up()
    with protected.provider() if options.kind == "all" else contextlib.nullcontext() as issuer:
        chosen = [pair for pair in pairs(options.kind) if is_chosen(pair, options.texts)]
        signed_in = [cell for cell in protected.cells(issuer) if is_chosen(cell, options.texts)] if issuer else []
        cells = [*chosen, *signed_in]
        flaky = run_cells(cells)
    if not cells:
        sys.exit("no pair of client and server matches")
    print_matrix(chosen)
    for cell in cells:
        for line in cell.report(options.details):
            print(f"{cell.title}: {line}")
    for cell, why in flaky:
        print(f"flaky: {cell.title}: {'; '.join(why)}")
    failed = sum(len(cell.failures) for cell in cells)
    print(f"interop: {sum(cell.total for cell in cells) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
