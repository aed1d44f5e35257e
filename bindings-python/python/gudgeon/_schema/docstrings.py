"""Parses Google, NumPy and Sphinx docstrings into a description and descriptions of parameters. Never raises."""

from __future__ import annotations

import re
from inspect import cleandoc

_PARAMETERS = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
    "attributes",
}
_OTHERS = {
    "return",
    "returns",
    "yield",
    "yields",
    "raises",
    "raise",
    "warns",
    "example",
    "examples",
    "note",
    "notes",
    "see also",
    "references",
    "warning",
    "warnings",
    "todo",
}
# Compiled when they are first used, because that takes longer than the import of this module. In none can two parts in
# a row match the same characters, since the time would grow with the square of a line's length.
_NUMPY_ITEM = r"^((?:\*{0,2}\w+)(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$"
_SPHINX_PARAM = r"^:(?:param|parameter|arg|argument|key|keyword|ivar|var|cvar)\s([^:]+):(.*)$"
_SPHINX_NOISE = r"^:(?:type|rtype|vartype)\b[^:]*:"
_SPHINX_FIELD = r"^:\w[^:]*:"


def parse(doc: str | None) -> tuple[str, dict[str, str]]:
    """Returns the text without its parameter section, and each parameter's (or attribute's) description."""
    if not isinstance(doc, str) or not doc.strip():
        return "", {}
    lines = cleandoc(doc).splitlines()
    text: list[str] = []
    found: dict[str, str] = {}
    at = 0
    while at < len(lines):
        line = lines[at]
        if _is_numpy_heading(lines, at) and line.strip().lower() in _PARAMETERS:
            at = _numpy(lines, at + 2, found)
        elif _google_heading(line) in _PARAMETERS and _indented(lines, at + 1):
            at = _google(lines, at + 1, found)
        elif (match := re.match(_SPHINX_PARAM, line)) and (name := _last_word(match[1])):
            at, found[name] = _continued(lines, at + 1, match[2].strip())
        elif re.match(_SPHINX_NOISE, line):
            at, _ = _continued(lines, at + 1, "")
        else:
            text.append(line.rstrip())
            at += 1
    joined = re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip()
    return joined, {name: description for name, description in found.items() if description}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _indented(lines: list[str], at: int) -> bool:
    """Returns whether the next line that is not blank is indented."""
    return next((_indent(line) > 0 for line in lines[at:] if line.strip()), False)


def _is_numpy_heading(lines: list[str], at: int) -> bool:
    return at + 1 < len(lines) and bool(lines[at].strip()) and re.fullmatch(r"-{3,}\s*", lines[at + 1]) is not None


def _last_word(text: str) -> str:
    """Returns the letters, digits and underscores that a text ends with."""
    return re.split(r"\W", text.rstrip())[-1]


def _google_heading(line: str) -> str:
    """Returns the words of a heading such as `Args:` in lower case, or an empty text for another line."""
    words, colon, rest = line.partition(":")
    return words.rstrip().lower() if colon and not rest.strip() and not line[:1].isspace() else ""


def _google_item(line: str) -> tuple[str, str] | None:
    """Returns the name and the text of an item such as `name (type): text`."""
    match = re.match(r"\*{0,2}(\w+)\s*", line)
    if match is None:
        return None
    rest = line[match.end() :]
    if rest.startswith("("):
        rest = _after_parentheses(rest).lstrip()
    if not rest.startswith(":") or not (rest[1:2].isspace() or rest == ":"):
        return None
    return match[1], rest[1:].strip()


def _after_parentheses(text: str) -> str:
    """Returns what follows the parenthesis that closes the first one, or an empty text if none does."""
    depth = 0
    for at, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return text[at + 1 :]
    return ""


def _google(lines: list[str], at: int, found: dict[str, str]) -> int:
    depth: int | None = None
    name = ""
    while at < len(lines):
        line = lines[at]
        if line.strip():
            indent = _indent(line)
            if indent == 0:
                break
            depth = indent if depth is None else depth
            item = _google_item(line.strip()) if indent <= depth else None
            if item:
                name, description = item
                found[name] = description
            elif name and indent > depth:
                found[name] = f"{found[name]} {line.strip()}".strip()
        at += 1
    return at


def _numpy(lines: list[str], at: int, found: dict[str, str]) -> int:
    names: list[str] = []
    while at < len(lines):
        line = lines[at]
        if _is_numpy_heading(lines, at):
            break
        if line.strip():
            if _indent(line) == 0:
                match = re.match(_NUMPY_ITEM, line.strip())
                if match is None or _google_heading(line) in _OTHERS:
                    break
                names = [part.strip().lstrip("*") for part in match[1].split(",")]
                found.update((name, "") for name in names)
            else:
                for name in names:
                    found[name] = f"{found[name]} {line.strip()}".strip()
        at += 1
    return at


def _continued(lines: list[str], at: int, text: str) -> tuple[int, str]:
    """Returns a Sphinx field with its continuation lines."""
    while (
        at < len(lines)
        and lines[at].strip()
        and _indent(lines[at]) > 0
        and not re.match(_SPHINX_FIELD, lines[at].strip())
    ):
        text = f"{text} {lines[at].strip()}"
        at += 1
    return at, text.strip()
