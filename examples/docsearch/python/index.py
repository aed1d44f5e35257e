"""Full-text search over a folder of Markdown, with the SQLite FTS5 that comes with Python."""

from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

SKIPPED = {"node_modules", "target", "dist"}  # beside every folder whose name begins with a dot
MAX_WORDS = 32  # of a query; SQLite's own limit on an expression is not far above
SNIPPET_WORDS = 24

Report = Callable[[int, int, str], object]  # files done, files in all, the path of the last one


@dataclass
class Hit:
    path: str
    title: str  # of the section
    line: int  # where the section begins
    score: float  # higher is better; compares within one answer only
    snippet: str


@dataclass
class Heading:
    level: int
    title: str
    line: int


@dataclass
class Section:
    title: str
    line: int
    body: str


class NoSuchDocument(LookupError):
    def __init__(self, path: str) -> None:
        super().__init__(f'There is no document "{path}": give a path as search returns it, such as "README.md".')


class Index:
    """The contents of a folder when it was indexed. Documents are looked up by path in it, so no path opens a file."""

    def __init__(self, folder: Path, report: Report = lambda done, total, path: None) -> None:
        self.documents: dict[str, str] = {}
        self.sections = 0
        self._lock = threading.Lock()  # handlers may run on several threads
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._database.execute("CREATE VIRTUAL TABLE sections USING fts5(title, body, path UNINDEXED, line UNINDEXED)")
        paths = sorted(markdown_files(folder))
        step = max(1, len(paths) // 100)
        for done, path in enumerate(paths, 1):
            with suppress(OSError, UnicodeEncodeError):  # unreadable, or its name is not text
                path.encode()
                self._add(path, (folder / path).read_bytes().decode(errors="replace"))
            if done % step == 0 or done == len(paths):
                report(done, len(paths), path)

    def _add(self, path: str, text: str) -> None:
        self.documents[path] = text
        rows = [(section.title, section.body, path, section.line) for section in split_sections(path, text)]
        self._database.executemany("INSERT INTO sections VALUES (?, ?, ?, ?)", rows)
        self.sections += len(rows)

    def search(self, query: str, limit: int = 10) -> list[Hit]:
        """Returns the sections with any of the query's words, best first; a word in the title counts three times."""
        words = split_words(query)
        if not words:
            return []
        rows = """SELECT path, title, line, -bm25(sections, 3.0, 1.0) AS score, snippet(sections, 1, '', '', '…', ?)
                  FROM sections WHERE sections MATCH ? ORDER BY score DESC, rowid LIMIT ?"""
        match = " OR ".join(f'"{word}"' for word in words)
        with self._lock:
            found = self._database.execute(rows, (SNIPPET_WORDS, match, limit)).fetchall()
        return [
            Hit(path, title, line, round(score, 4), " ".join(text.split())) for path, title, line, score, text in found
        ]

    def outline(self, path: str) -> list[Heading]:
        return list(headings(self.read(path)))

    def read(self, path: str) -> str:
        try:
            return self.documents[path]
        except KeyError:
            raise NoSuchDocument(path) from None

    def complete(self, typed: str) -> list[str]:
        """Returns the paths that begin with the given text, then those that contain it elsewhere."""
        typed = typed.lower()
        found = [path for path in self.documents if typed in path.lower()]
        return sorted(found, key=lambda path: not path.lower().startswith(typed))


def markdown_files(folder: Path) -> Iterator[str]:
    """Paths relative to the folder. Symbolic links are left out: they could lead out of it, or round in circles."""
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in SKIPPED]
        for name in files:
            path = Path(here, name)
            if name.endswith(".md") and path.is_file() and not path.is_symlink():
                yield path.relative_to(folder).as_posix()


def split_sections(path: str, text: str) -> Iterator[Section]:
    """A section is a heading and what follows up to the next one; text before the first heading goes under the path."""
    lines = text.split("\n")
    starts = [(heading.title, heading.line) for heading in headings(text)]
    ends = [line - 1 for _, line in starts] + [len(lines)]
    if "".join(lines[: ends[0]]).strip():
        yield Section(path, 1, "\n".join(lines[: ends[0]]))
    for (title, line), end in zip(starts, ends[1:], strict=True):
        yield Section(title, line, "\n".join(lines[line:end]))


def headings(text: str) -> Iterator[Heading]:
    """The `#` headings that are not inside a code fence."""
    fence = ""
    for number, line in enumerate(text.split("\n"), 1):
        mark = re.match(r" {0,3}(`{3,}(?=[^`]*$)|~{3,})(.*)", line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
        elif mark:
            fence = mark[1]
        elif (found := re.match(r" {0,3}(#{1,6})[ \t](.*)", line)) and (title := bare_title(found[2])):
            yield Heading(len(found[1]), title, number)


def bare_title(text: str) -> str:
    """Removes the spaces around it and closing hashes after a space: `# C#` keeps its hash."""
    title = text.strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else title


def split_words(query: str) -> list[str]:
    """Returns the distinct words of a query. Quotes and operators are removed, so that any text is a valid query."""
    return list(dict.fromkeys(re.findall(r"[^\W_]+", query.lower())))[:MAX_WORDS]
