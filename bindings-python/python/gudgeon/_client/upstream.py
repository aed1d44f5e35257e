"""A server that is mounted into one of this program: its target, and the options of the client that reaches it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from msgspec.json import decode

from .._model.json import encode
from .._model.keyring_store import BlockingCall
from .._native import Place, group_file, group_targets
from .errors import refusal_of
from .exit import close_at_exit, log_failure
from .options import Options
from .questions import answering
from .targets import InMemory, place_of

_CALLBACKS = "the clients of the server answer its questions and get its messages: leave {name}= out"


class Upstream:
    """A server that is mounted into another one: `app.mount("prefix", Upstream(target))`. A client reaches it.

    Its tools and prompts are offered as `prefix_name`, its resources with their URIs. Calls are passed on with their
    progress, log messages, `_meta` and cancellation, and results as they came. Its questions (elicitation, sampling,
    roots) reach the client that made the call, whatever revisions the two speak.

    While it can't be reached, what it offered before stays, calls of it fail and name the reason, and it is tried again
    in the background, after 1 s at first and after growing delays of up to 60 s. A command that ended is started again.
    The start of the server waits for it for up to 10 s.

    Args:
        target: A URL, a command as a list of words or a `Command`, the Path of a program, or an entry of a host's
            configuration. With several servers, by name, or the Path of a JSON file with them, which is read at once,
            the names are `prefix_server_name`.
        **options: The options of a `Client`, such as `timeout=`, `headers=`, `auth=` and `revision=`, without its
            middleware and callback functions.

    Raises:
        TypeError, ValueError: The target or an option can't be used.

    >>> from gudgeon import Server, Upstream
    >>> app = Server("desk")
    >>> app.mount("clock", Upstream(["uvx", "mcp-server-time"], timeout=10))
    """

    __slots__ = ("_auth", "_headers", "_options", "_places")

    def __init__(self, target: Any, **options: Any) -> None:
        for name, value in options.items():
            if name == "middleware" or (callable(value) and name != "auth"):
                raise TypeError(f"Upstream: {_CALLBACKS.format(name=name)}")
        given = Options(options, "Upstream")
        self._options, self._auth = given.to_json(), given.auth
        self._headers = options.get("headers")
        # Each with the name of its server if there are several.
        self._places = tuple(self._placed(target))

    def __repr__(self) -> str:
        # Targets may hold secrets.
        return f"Upstream({', '.join(place.name for _, place in self._places)})"

    def _mount_into(self, native: Any, prefix: str, around: Callable[[str], Any], expose: tuple[Any, ...]) -> list[str]:
        """Mounts its servers into the native half of a server; returns their prefixes there.

        `around(rest)` returns the function that runs middleware around calls of the server whose prefix ends in `rest`.
        """
        close_at_exit()
        prefixes = []
        for name, place in self._places:
            rest = "" if name is None else f"_{name}"
            native.mount_upstream(prefix + rest, place, self._options, around(rest), expose, self._ask)
            prefixes.append(prefix + rest)
        return prefixes

    def _ask(self, question: Any) -> None:
        """Answers a question of a client that signs in; called on a thread of its own."""
        # Only clients with credentials ask.
        assert self._auth is not None
        call = self._auth._call
        try:
            wrong = question.answer(_answered(call, question.params))
            if wrong is not None:
                log_failure(call, TypeError(wrong))
        except Exception as error:
            question.refuse(encode(refusal_of(error, call)))

    def _placed(self, target: Any) -> Iterator[tuple[str | None, Place]]:
        if isinstance(target, PathLike) and Path(fspath(target)).suffix.lower() == ".json":
            path = fspath(target)
            yield from self._named(decode(group_file(path, Path(path).read_bytes())))
        elif isinstance(target, Mapping) and not {"command", "url"} & target.keys():
            given, read = group_targets(target)
            yield from self._named({**given, **decode(read or "{}")})
        else:
            yield None, self._place(target)

    def _named(self, targets: Mapping[str, Any]) -> Iterator[tuple[str, Place]]:
        for name, target in targets.items():
            yield name, self._place(target)

    def _place(self, target: Any) -> Place:
        place = place_of(target, self._headers)
        if isinstance(place, InMemory):
            raise TypeError(f"Upstream: {target!r} is a server of this program: mount it without Upstream")
        if not isinstance(place, Place):
            raise TypeError(f"Upstream: a transport of your own opens once: give a URL or a command, not {target!r}")
        return place


def _answered(call: Callable[..., Any], params: bytes) -> bytes:
    """Returns what the function of auth= answers, JSON."""
    steps = answering("auth", call, params, None)
    try:
        value = next(steps)
        while True:
            if isinstance(value, BlockingCall):
                value = value.run()
            if hasattr(value, "__await__"):
                value = _run(value)
            value = steps.send(value)
    except StopIteration as end:
        answer: bytes = end.value
        return answer


def _run(value: Awaitable[Any]) -> Any:
    import asyncio

    async def awaited() -> Any:
        return await value

    return asyncio.run(awaited())
