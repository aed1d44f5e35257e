"""Runs official clients against this project's servers, and its clients against official and published servers.

    python3 tests/interop/run.py [--only TEXT]… [--official] [--details]

Prints a matrix. `--only` selects pairs whose `client, transport, era → server` line contains the text; `--official`
pairs official clients with official and published servers instead, to validate this harness; `--details` prints each
failed check.
"""

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor

import peers
import protected
from pairs import pairs
from shared_server import serve_all

AT_ONCE = 4


def tasks(chosen):
    """Returns the tasks that can run concurrently: servers with all their clients, longest first, and stdio pairs."""
    shared = {}
    for pair in chosen:
        if pair.transport != "stdio":
            shared.setdefault(id(pair.serves), []).append(pair)
    for together in sorted(shared.values(), key=len, reverse=True):
        yield lambda together=together: serve_all(together)
    for pair in chosen:
        if pair.transport == "stdio":
            yield pair.over_stdio


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
    parser.add_argument("--only", action="append", default=[], metavar="TEXT")
    parser.add_argument("--official", action="store_true")
    parser.add_argument("--details", action="store_true")
    options = parser.parse_args()
    peers.set_up()
    chosen = [pair for pair in pairs(options.official) if all(text in pair.title for text in options.only)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(task) for task in tasks(chosen)]:
            done.result()
    signed_in = [] if options.official else protected.run(options.only)
    if not chosen and not signed_in:
        sys.exit("no pair of client and server matches --only")
    print_matrix(chosen)
    failed = sum(len(it.failures) for it in [*chosen, *signed_in])
    for pair in chosen:
        for line in pair.report(options.details):
            print(f"{pair.title}: {line}")
    for cell in signed_in:
        print(f"{cell.title}: {'; '.join(cell.failures) or 'passed'}")
    print(f"interop: {sum(it.total for it in [*chosen, *signed_in]) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
