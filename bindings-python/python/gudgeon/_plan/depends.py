"""`Depends`: plans providers once, calls them for each call, and cleans up after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from .._schema.markers import Depends
from .contexts import CallContext
from .signature import Signature


class Overrides:
    """The providers that a server replaces by fakes, in its own handlers and those of servers mounted into it."""

    def __init__(self) -> None:
        self.fakes: dict[Any, Any] = {}
        self.above: list[Overrides] = []

    def fake_of(self, dependency: Any) -> Any:
        """Returns the fake of a provider, or None. The server's own comes first."""
        fake = self.fakes.get(dependency)
        above = iter(self.above)
        while fake is None and (table := next(above, None)) is not None:
            fake = table.fake_of(dependency)
        return fake

    def override(self, dependency: Callable[..., Any], fake: Callable[..., Any]) -> AbstractContextManager[None]:
        """Calls `fake` in place of `dependency` inside the `with` block."""
        if not callable(dependency) or not callable(fake):
            raise TypeError("override() takes two functions: the provider of a dependency, and its replacement")
        return self._replaced(dependency, fake)

    @contextmanager
    def _replaced(self, dependency: Any, fake: Any) -> Iterator[None]:
        before = self.fakes.get(dependency)
        self.fakes[dependency] = fake
        try:
            yield
        finally:
            if before is None:
                del self.fakes[dependency]
            else:
                self.fakes[dependency] = before


class Provider:
    """A provider's plan: its function, and the dependencies of its own."""

    __slots__ = ("cached", "fn", "kind", "needs", "place")

    def __init__(self, depends: Depends, inside: tuple[Any, ...] = ()) -> None:
        fn = depends.provider
        signature = Signature(fn, handler=False)
        if fn in inside:
            raise TypeError(f"the dependency {signature.place} depends on itself")
        self.fn = fn
        self.cached = depends.cached
        self.place = signature.place
        self.kind = "async" if signature.is_async else "agen" if signature.is_async_generator else "sync"
        if signature.is_generator:
            self.kind = "gen"
        self.needs: list[tuple[str, type[CallContext] | Provider]] = []
        for parameter in signature.parameters:
            if parameter.depends is not None:
                self.needs.append((parameter.name, Provider(parameter.depends, (*inside, fn))))
            elif parameter.context is not None:
                self.needs.append((parameter.name, parameter.context))
            elif parameter.required:
                raise TypeError(
                    f"parameter {parameter.name!r} of the dependency {self.place} can't be filled in; "
                    "a provider takes a context, dependencies (Annotated[…, Depends(f)]) and parameters with defaults"
                )

    @property
    def is_async(self) -> bool:
        """True if it or one of its dependencies has to be awaited."""
        needs = (need.is_async for _, need in self.needs if isinstance(need, Provider))
        return self.kind in ("async", "agen") or any(needs)


class Scope:
    """The dependencies of one call, each provided once."""

    __slots__ = ("app", "cache", "call", "cleanups", "contexts", "overrides")

    def __init__(self, call: Any, app: Any, overrides: Overrides) -> None:
        self.call = call
        self.app = app
        self.overrides = overrides
        self.cache: dict[Any, Any] = {}
        self.contexts: dict[type[CallContext], CallContext] = {}
        self.cleanups: list[Any] = []

    def context(self, cls: type[CallContext]) -> CallContext:
        """Returns the call's context, made once."""
        context = self.contexts.get(cls)
        if context is None:
            context = self.contexts[cls] = cls(self.call, self.app)
        return context

    def _actual(self, provider: Provider) -> tuple[Provider, bool]:
        """Returns the provider or its fake, and whether an iterator that it returns is to be opened."""
        opens = provider.kind in ("gen", "agen")
        fake = self.overrides.fake_of(provider.fn)
        return (provider if fake is None else Provider(Depends(fake, cached=provider.cached))), opens

    def get(self, wanted: Provider) -> Any:
        """Returns the provider's value, in a `def` handler."""
        if wanted.cached and wanted.fn in self.cache:
            return self.cache[wanted.fn]
        provider, opens = self._actual(wanted)
        if provider.kind in ("async", "agen"):
            raise TypeError(f"{provider.place} is async, but replaces a dependency of a def handler; make it a def")
        value = provider.fn(**{name: self._need(need) for name, need in provider.needs})
        if provider.kind == "gen" or (opens and hasattr(value, "__next__")):
            value = self._open(value, provider)
        if wanted.cached:
            self.cache[wanted.fn] = value
        return value

    def _need(self, need: type[CallContext] | Provider) -> Any:
        return self.get(need) if isinstance(need, Provider) else self.context(need)

    async def aget(self, wanted: Provider) -> Any:
        """Returns the provider's value, in an `async def` handler."""
        if wanted.cached and wanted.fn in self.cache:
            return self.cache[wanted.fn]
        provider, opens = self._actual(wanted)
        arguments = {}
        for name, need in provider.needs:
            arguments[name] = await self.aget(need) if isinstance(need, Provider) else self.context(need)
        value = provider.fn(**arguments)
        if provider.kind == "async":
            value = await value
        elif provider.kind == "gen" or (opens and hasattr(value, "__next__")):
            value = self._open(value, provider)
        elif provider.kind == "agen" or (opens and hasattr(value, "__anext__")):
            stream = value
            try:
                value = await stream.__anext__()
            except StopAsyncIteration:
                raise RuntimeError(f"the dependency {provider.place} yielded nothing") from None
            self.cleanups.append(stream)
        if wanted.cached:
            self.cache[wanted.fn] = value
        return value

    def _open(self, stream: Any, provider: Provider) -> Any:
        for value in stream:
            self.cleanups.append(stream)
            return value
        raise RuntimeError(f"the dependency {provider.place} yielded nothing")

    def close(self, error: BaseException | None) -> None:
        """Finishes every generator, the last one first; the error is thrown into each, and none can suppress it."""
        failed: BaseException | None = None
        while self.cleanups:
            try:
                _finish(self.cleanups.pop(), error)
            except BaseException as problem:
                if problem is not error:
                    failed = error = problem
        if failed is not None:
            raise failed

    async def aclose(self, error: BaseException | None) -> None:
        """Finishes every generator like `close`, async ones included."""
        failed: BaseException | None = None
        while self.cleanups:
            stream = self.cleanups.pop()
            try:
                if hasattr(stream, "__anext__"):
                    await _afinish(stream, error)
                else:
                    _finish(stream, error)
            except BaseException as problem:
                if problem is not error:
                    failed = error = problem
        if failed is not None:
            raise failed


def _finish(stream: Any, error: BaseException | None) -> None:
    try:
        if error is not None and hasattr(stream, "throw"):
            stream.throw(error)
        else:
            next(stream)
    except StopIteration:
        return
    if hasattr(stream, "close"):  # it yielded twice: code after the second yield does not run
        stream.close()


async def _afinish(stream: Any, error: BaseException | None) -> None:
    try:
        if error is not None and hasattr(stream, "athrow"):
            await stream.athrow(error)
        else:
            await stream.__anext__()
    except StopAsyncIteration:
        return
    if hasattr(stream, "aclose"):
        await stream.aclose()
