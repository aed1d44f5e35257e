"""Every row of docs/design/limits.md has tests, which tests/limits.json names as `path::name`."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TESTS = json.loads((ROOT / "tests/limits.json").read_text())


def test_every_row_of_the_table_has_tests():
    table = re.findall(r"^\| (.+?) \|.*\|.*\|$", (ROOT / "docs/design/limits.md").read_text(), re.MULTILINE)
    assert table == ["limit", *TESTS]
    assert all(TESTS.values())


@pytest.mark.parametrize("test", sorted({test for tests in TESTS.values() for test in tests}))
def test_the_tests_exist(test):
    path, name = test.split("::")
    text = (ROOT / path).read_text()
    # A function, or the title of a test in Node and of a row of the hostile suites.
    found = [rf"(fn|def) {re.escape(name)}\(", rf"""[(`"']{re.escape(name)}"""]
    assert any(re.search(pattern, text) for pattern in found), f"{path} has no test {name!r}"
