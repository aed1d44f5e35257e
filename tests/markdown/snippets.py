"""The fenced code blocks of every Markdown file in the repository."""

import re
import subprocess
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<code>.*?)^```$", re.M | re.S)


class Snippet(NamedTuple):
    """A fenced code block: its language, without rustdoc's attributes, and the name of a block that is a file."""

    document: str
    line: int
    language: str
    name: str
    code: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def documents() -> list[str]:
    """Returns the paths of all Markdown files that git tracks or would track."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return [path for path in listed.split("\n") if path and (ROOT / path).exists()]


def snippets_of(document: str) -> list[Snippet]:
    """Returns the code blocks of one document, in order."""
    text = (ROOT / document).read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        language, _, name = match["info"].strip().partition(" ")
        language = language.removesuffix(",no_run")
        found.append(Snippet(document, text[: match.start()].count("\n") + 1, language, name.strip(), match["code"]))
    return found


SNIPPETS = [snippet for document in documents() for snippet in snippets_of(document)]


def in_language(*languages: str) -> list[Snippet]:
    """Returns the snippets written in one of these languages."""
    return [snippet for snippet in SNIPPETS if snippet.language in languages]


def expected_output(code: str, call: str) -> list[str]:
    """Returns the comments behind calls of `print` or `console.log`: the lines that the program must write."""
    marker = "#" if call == "print" else "//"
    return re.findall(rf"{re.escape(call)}\(.*\);? *{marker} (.*)$", code, re.M)
