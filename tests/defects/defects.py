"""Reads the defects of the `*.toml` files here, and puts them into sources: as they are, or behind a switch."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import NamedTuple

import tomllib

HERE = Path(__file__).resolve().parent


class WrongEntryError(Exception):
    """An entry that doesn't fit the sources."""


class Defect(NamedTuple):
    """One line of product code, and what it becomes."""

    name: str
    # The name of the file with the entry.
    area: str
    # The stages that probably find it, likeliest first.
    stages: tuple[str, ...]
    file: str
    # A whole expression, or a whole statement; an empty `new` takes a statement out.
    old: str
    new: str
    # A text that stands once in the file, after which `old` is looked for; without it, `old` stands once.
    after: str | None

    def edited(self, source: str) -> str:
        """Returns the source with the defect."""
        start, end = self._place(source)
        return source[:start] + (self.new or self._nothing()) + source[end:]

    def switched(self, source: str) -> str:
        """Returns the source with the defect behind the switch."""
        start, end = self._place(source)
        return source[:start] + self._switch(_indent(source, start)) + source[end:]

    def _place(self, source: str) -> tuple[int, int]:
        begin = 0
        if self.after is not None:
            self._check_once(source, self.after, "after")
            begin = source.index(self.after) + len(self.after)
        else:
            self._check_once(source, self.old, "old")
        start = source.find(self.old, begin)
        if start < 0:
            raise WrongEntryError(
                f"{self.area}.toml: {self.name}: {self.file} has no {self.old!r} after {self.after!r}"
            )
        return start, start + len(self.old)

    def _check_once(self, source: str, text: str, what: str) -> None:
        if (count := source.count(text)) != 1:
            raise WrongEntryError(
                f"{self.area}.toml: {self.name}: {self.file} has {what} {text!r} {count} times, not once"
            )

    def _nothing(self) -> str:
        return "pass" if self.file.endswith(".py") else ""

    def _switch(self, indent: str) -> str:
        name, old, new = json.dumps(self.name), self.old, self.new or self._nothing()
        if self.file.endswith(".py"):
            switch = f'__import__("_seeded").is_active({name})'
            if _is_expression(old) and _is_expression(new):
                return f"(({new}) if {switch} else ({old}))"
            return f"if {switch}:\n{indent}    {new}\n{indent}else:\n{indent}    {old}"
        is_rust = self.file.endswith(".rs")
        switch = f"crate::seeded::is_active({name})" if is_rust else f"isSeeded({name})"
        if old.endswith(";"):
            return (
                f"if {switch} {{ {new} }} else {{ {old} }}"
                if is_rust
                else f"if ({switch}) {{ {new} }} else {{ {old} }}"
            )
        return f"(if {switch} {{ {new} }} else {{ {old} }})" if is_rust else f"({switch} ? {new} : {old})"


def read_all() -> list[Defect]:
    """Returns all defects, by area."""
    found = []
    for path in sorted(HERE.glob("*.toml")):
        entries = tomllib.loads(path.read_text())
        for entry in entries["defect"]:
            after = entry.pop("after", None)
            found.append(Defect(area=path.stem, stages=tuple(entries["stages"]), after=after, **entry))
    names = [defect.name for defect in found]
    for name in names:
        if names.count(name) > 1:
            raise WrongEntryError(f"two defects have the name {name!r}")
    return found


def problems(root: Path, defects: list[Defect]) -> list[str]:
    """Returns what is wrong with defects that don't fit the sources below a folder."""
    wrong = []
    for defect in defects:
        try:
            defect.edited((root / defect.file).read_text())
        except (OSError, WrongEntryError) as problem:
            wrong.append(str(problem))
    return wrong


def _indent(source: str, at: int) -> str:
    line = source[source.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip())]


def _is_expression(text: str) -> bool:
    try:
        ast.parse(text, mode="eval")
    except SyntaxError:
        return False
    return True
