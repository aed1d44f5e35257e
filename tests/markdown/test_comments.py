"""Documentation comments begin with a verb or a noun, as CONTRIBUTING.md says."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
COMMENT = re.compile(r'^[ \t]*(?:///|//!|/\*\*|""")[ \t]*(?P<first>\w+)', re.M)
# Question words. No documentation comment may begin with one: "Whether to ask." has no verb that says what the item
# does; "Returns whether to ask." has one.
FORBIDDEN_FIRST_WORDS = {
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "Where",
    "Whether",
    "Which",
    "Why",
    "How",
}


def sources() -> list[str]:
    command = ["git", "ls-files", "*.rs", "*.py", "*.pyi", "*.ts", "*.js", "*.mjs"]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()


def wrong_beginnings(text: str) -> list[tuple[int, str]]:
    """Returns the line and the first word of each comment that begins with a forbidden first word."""
    found = ((text.count("\n", 0, comment.start("first")) + 1, comment["first"]) for comment in COMMENT.finditer(text))
    return [beginning for beginning in found if beginning[1] in FORBIDDEN_FIRST_WORDS]


@pytest.mark.parametrize(
    "comment", ["/// Whether to ask.", '    """What it holds."""', "/** How it ends. */", "//! Who asks."]
)
def test_a_wrong_beginning_is_found(comment: str) -> None:
    assert [line for line, _ in wrong_beginnings(f"pass\n{comment}\n")] == [2]
    assert wrong_beginnings("/// Returns whether to ask.\n// Whether to ask.\n") == []


def test_no_comment_begins_with_a_forbidden_first_word() -> None:
    files = sources()
    assert len(files) > 1000
    texts = {file: (ROOT / file).read_text(encoding="utf-8") for file in files if (ROOT / file).exists()}
    found = {file: wrong_beginnings(text) for file, text in texts.items()}
    assert {file: lines for file, lines in found.items() if lines} == {}
