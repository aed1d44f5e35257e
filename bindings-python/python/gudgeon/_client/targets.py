"""The targets of clients: commands, URLs, servers of this program, and transports of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .._model.article import with_article
from .._native import Place

_INTERPRETERS = {".py": sys.executable, ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node", ".mts": "node"}


class Command:
    """A program to start as a server, with its environment and directory.

    Args:
        argv: The program and its arguments, as separate strings; no shell is involved.
        env: Environment variables beside HOME, LOGNAME, PATH, SHELL, TERM and USER (on Windows the corresponding ones),
            which are inherited; or "inherit" for all variables of this program, secrets included. Default: none.
        cwd: The working directory. Default: that of this program.
        restart: Starts it again before the next call if it has ended. Default False.

    Raises:
        TypeError: An argument is not a string or path, or `env` neither a mapping of strings nor "inherit".
        ValueError: There is no program, or an argument holds a NUL character.

    Spec: Base Protocol › Transports › stdio.

    >>> Command("uvx", "mcp-server-time", env={"TZ": "UTC"})
    Command('uvx', 'mcp-server-time')
    """

    __slots__ = ("argv", "cwd", "env", "restart")

    def __init__(
        self,
        *argv: str,
        env: Mapping[str, str] | Literal["inherit"] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        restart: bool = False,
    ) -> None:
        if len(argv) == 1 and isinstance(argv[0], (list, tuple)):
            raise TypeError(f"Command takes words, not one {type(argv[0]).__name__}: write Command(*words)")
        self.argv = _words(argv, "Command")
        self.env = env if env == "inherit" else _texts(env or {}, "env= of a Command")
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.restart = bool(restart)

    def _entry(self) -> dict[str, Any]:
        """Returns the command as an entry of a host's configuration."""
        program, *args = self.argv
        return {"command": program, "args": args, "env": self.env, "cwd": self.cwd, "restart": self.restart}

    def __repr__(self) -> str:
        # The environment is not shown: it holds secrets.
        return f"Command({', '.join(map(repr, self.argv))})"


class InMemory:
    """A `Server` of this program; `testing` is what `on_descriptors` takes."""

    def __init__(self, server: Any, testing: Any = None) -> None:
        self.server = server
        self.testing = testing

    def serve(self) -> Any:
        """Returns what serves the server to this client."""
        return self.server._serve_in_memory(self.testing)


class Wire:
    """A `Transport` of the user."""

    def __init__(self, transport: Any) -> None:
        self.transport = transport


def place_of(target: Any, headers: Any = None) -> Place | InMemory | Wire:
    """Returns the place that a target names. Raises ValueError or TypeError with the fix for anything else."""
    headers = _json(headers, "headers=")
    if isinstance(target, (str, Mapping)):
        return Place(_json(target, "the target"), headers)
    if isinstance(target, os.PathLike):
        target = _file(Path(os.fspath(target)))
    elif isinstance(target, (list, tuple)):
        target = Command(*_words(target, "a command"))
    if isinstance(target, Command):
        return Place(_json(target._entry(), "a command"), headers)
    Place.check_headers(headers)
    if isinstance(target, InMemory):
        return target
    if is_server(target):
        return InMemory(target)
    if all(callable(getattr(target, name, None)) for name in ("receive", "send", "close")):
        return Wire(target)
    raise TypeError(
        f"{target!r} is not a target; a client takes a command as a list of words, a Command, the Path of a "
        'file, a Server, an entry {"command": …, "args": […]} of a host\'s configuration, a URL, or a Transport'
    )


def is_server(target: Any) -> bool:
    """Returns whether a target is a `Server`. Its module is not imported here, because most clients have no server."""
    return callable(getattr(type(target), "_serve_in_memory", None))


def _file(path: Path) -> Command:
    interpreter = _INTERPRETERS.get(path.suffix.lower())
    # A bare name would be looked up on the PATH.
    program = str(path) if path.is_absolute() or len(path.parts) > 1 else os.path.join(os.curdir, str(path))
    return Command(program) if interpreter is None else Command(interpreter, str(path))


def _json(value: Any, what: str) -> bytes:
    """Returns a value as JSON. Raises TypeError for anything but JSON values and paths, such as bytes."""
    from json import dumps

    def plain(part: Any) -> Any:
        if isinstance(part, os.PathLike):
            return os.fspath(part)
        if isinstance(part, Mapping):
            return dict(part)
        raise TypeError(f"{what} must be made of JSON values, not {with_article(type(part).__name__)}")

    return dumps(value, default=plain).encode()


def _words(words: Sequence[Any], what: str) -> tuple[str, ...]:
    if not words:
        raise ValueError(f"{what} needs at least the program")
    out = tuple(os.fspath(word) if isinstance(word, os.PathLike) else word for word in words)
    for word in out:
        if not isinstance(word, str):
            raise TypeError(f"{what} must be made of strings: {word!r} is of type {type(word).__name__}")
        if "\0" in word:
            raise ValueError(f"{what} can't hold a NUL character: {word!r}")
    return out


def _texts(mapping: Mapping[str, Any], what: str) -> dict[str, str]:
    if not isinstance(mapping, Mapping):
        raise TypeError(f'{what} must be a mapping of strings, or "inherit"')
    for name, value in mapping.items():
        if not isinstance(name, str) or not isinstance(value, str):
            # The value may be a secret.
            raise TypeError(f"{what} must have strings: {name!r} is {with_article(type(value).__name__)}")
    return dict(mapping)
