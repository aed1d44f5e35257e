"""The targets of clients: commands, URLs, servers of this program, and transports of the user."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .._model.article import with_article

_SCHEMES = ("http", "https", "ws", "wss", "tcp", "unix")
_INTERPRETERS = {".py": sys.executable, ".js": "node", ".mjs": "node", ".cjs": "node", ".ts": "node", ".mts": "node"}


class Command:
    """A program to start as a server, with its environment and directory.

    Args:
        argv: The program and its arguments, as separate strings; no shell is involved.
        env: Environment variables beside those inherited from this program. Default: none.
        cwd: The working directory. Default: that of this program.
        restart: Starts it again before the next call if it has ended. Default False.

    Raises:
        TypeError: An argument is not a string or path.
        ValueError: There is no program, or an argument holds a NUL character.

    Spec: Base Protocol › Transports › stdio.

    >>> Command("uvx", "mcp-server-time", env={"TZ": "UTC"})
    Command('uvx', 'mcp-server-time')
    """

    __slots__ = ("argv", "cwd", "env", "restart")

    def __init__(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        cwd: str | os.PathLike[str] | None = None,
        restart: bool = False,
    ) -> None:
        if len(argv) == 1 and isinstance(argv[0], (list, tuple)):
            raise TypeError(f"Command takes words, not one {type(argv[0]).__name__}: write Command(*words)")
        self.argv = _words(argv, "Command")
        self.env = _texts(env or {}, "env= of a Command")
        self.cwd = None if cwd is None else os.fspath(cwd)
        self.restart = bool(restart)

    def __repr__(self) -> str:
        # The environment is not shown: it holds secrets.
        return f"Command({', '.join(map(repr, self.argv))})"


class Url:
    """An address, and the headers that an entry of a host's configuration has for it."""

    def __init__(self, url: str, headers: Mapping[str, str] | None = None) -> None:
        self.url = url
        self.headers = dict(headers or {})

    @property
    def has_headers(self) -> bool:
        return self.url.partition(":")[0].lower() in ("http", "https", "ws", "wss")

    def __str__(self) -> str:
        # The query may hold a secret.
        bare, question, _ = self.url.partition("?")
        return f"{bare}?…" if question else bare


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


def place_of(target: Any) -> Command | Url | InMemory | Wire:
    """Returns the place that a target names. Raises ValueError or TypeError with the fix for anything else."""
    if isinstance(target, str):
        return _url(target)
    if isinstance(target, (Command, InMemory)):
        return target
    if isinstance(target, os.PathLike):
        return _file(Path(os.fspath(target)))
    if is_server(target):
        return InMemory(target)
    if isinstance(target, Mapping):
        return _entry(target)
    if isinstance(target, (list, tuple)):
        return Command(*_words(target, "a command"))
    if all(callable(getattr(target, name, None)) for name in ("receive", "send", "close")):
        return Wire(target)
    raise TypeError(
        f"{target!r} is not a target; a client takes a command as a list of words, a Command, the Path of a "
        'file, a Server, an entry {"command": …, "args": […]} of a host\'s configuration, a URL, or a Transport'
    )


def is_server(target: Any) -> bool:
    """Returns whether a target is a `Server`. Its module is not imported here, because most clients have no server."""
    return callable(getattr(type(target), "_serve_in_memory", None))


def _url(text: str) -> Url:
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in _SCHEMES and rest:
        return Url(text)
    if text.endswith(tuple(_INTERPRETERS)) and " " not in text:
        raise ValueError(f"{text!r} is not a URL; to run that file, write Path({text!r})")
    words = text.split() or ["python", "server.py"]
    raise ValueError(f"{text!r} is not a URL ({', '.join(_SCHEMES)}); a command is a list of words: {words!r}")


def _file(path: Path) -> Command:
    interpreter = _INTERPRETERS.get(path.suffix.lower())
    # A bare name would be looked up on the PATH.
    program = str(path) if path.is_absolute() or len(path.parts) > 1 else os.path.join(os.curdir, str(path))
    return Command(program) if interpreter is None else Command(interpreter, str(path))


def _entry(entry: Mapping[str, Any]) -> Command | Url:
    """Reads an entry of `mcpServers` in a host's JSON configuration; members for the host are ignored."""
    if "mcpServers" in entry:
        raise ValueError('a mapping with "mcpServers" names several servers: ClientGroup takes it')
    url = entry.get("url")
    if url is not None and "command" not in entry:
        if not isinstance(url, str):
            raise TypeError(f'"url" must be a string, not {url!r}')
        headers = entry.get("headers") or {}
        if not isinstance(headers, Mapping):
            raise TypeError(f'"headers" is a mapping of names to values, not {with_article(type(headers).__name__)}')
        for name, value in headers.items():
            if not isinstance(name, str) or not isinstance(value, str):
                raise TypeError(f'"headers" must have strings: {name!r} is of type {type(value).__name__}')
        return Url(_url(url).url, headers)
    command = entry.get("command")
    if not isinstance(command, str) or not command:
        raise ValueError(f'an entry of a host\'s configuration needs "command" or "url"; this one has {sorted(entry)}')
    args = entry.get("args") or ()
    if isinstance(args, str):
        raise TypeError(f'"args" is a list of words: {args.split()!r}')
    env = {name: value for name, value in (entry.get("env") or {}).items() if value is not None}
    return Command(command, *_words(args, '"args"', some=False), env=env, cwd=entry.get("cwd"))


def _words(words: Sequence[Any], what: str, *, some: bool = True) -> tuple[str, ...]:
    if some and not words:
        raise ValueError(f"{what} needs at least the program")
    out = tuple(os.fspath(word) if isinstance(word, os.PathLike) else word for word in words)
    for word in out:
        if not isinstance(word, str):
            raise TypeError(f"{what} must be made of strings: {word!r} is of type {type(word).__name__}")
        if "\0" in word:
            raise ValueError(f"{what} can't hold a NUL character: {word!r}")
    return out


def _texts(mapping: Mapping[str, Any], what: str) -> dict[str, str]:
    for name, value in mapping.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"{what} must have strings: {name!r} is {value!r}")
    return dict(mapping)
