"""Documentation comments begin with a verb or a noun, as CONTRIBUTING.md says."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r'^[ \t]*(?:///|//!|/\*\*|""")[ \t]*(?P<first>\w+)', re.M)
# Words that begin a relative clause or a question.
CLAUSE_WORDS = {"What", "Whatever", "Who", "Whoever", "Whom", "Whose", "Where", "Whether", "Which", "Why", "How"}


def sources() -> list[str]:
    command = ["git", "ls-files", "*.rs", "*.py", "*.pyi", "*.ts", "*.js", "*.mjs"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def clauses(text: str) -> list[tuple[int, str]]:
    """Returns the line and the first word of each comment that begins with a clause."""
    found = ((text.count("\n", 0, it.start("first")) + 1, it["first"]) for it in COMMENT.finditer(text))
    return [it for it in found if it[1] in CLAUSE_WORDS]


@pytest.mark.parametrize(
    "comment", ["/// Whether to ask.", '    """What it holds."""', "/** How it ends. */", "//! Who asks."]
)
def test_a_clause_is_found(comment: str) -> None:
    assert [line for line, _ in clauses(f"pass\n{comment}\n")] == [2]
    assert clauses("/// Returns whether to ask.\n// Whether to ask.\n") == []


def test_no_comment_begins_with_a_clause() -> None:
    files = sources()
    assert len(files) > 1000
    found = {file: clauses((ROOT / file).read_text(encoding="utf-8")) for file in files if (ROOT / file).exists()}
    assert {file: lines for file, lines in found.items() if lines} == {}
