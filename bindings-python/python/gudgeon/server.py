"""`Server`: what its users register handlers with, change while it runs, and run."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

from . import _options
from ._chain import applies
from ._json import encode
from ._lifespan import Lifespan
from ._native import Server as NativeServer
from ._plan import UNSET, Plan, make_plan
from ._plan_depends import Overrides
from ._registration import Registration
from ._registry import Registry
from .errors import NotSupported

_ROOTS_CHANGED = "notifications/roots/list_changed"


class Server:
    """An MCP server: handlers under names, served to any number of clients."""

    def __init__(self, name: str, /, *, lifespan: Callable[[Any], Any] | None = None, **options: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"Server takes its name first, not {type(name).__name__}: Server('shelf')")
        _options.check("server", options, f"Server {name!r}")
        self.name = name
        self._options = options
        self._native = NativeServer(encode(_options.facts(name, options)))
        self._lifespan = Lifespan(self, lifespan)
        self._overrides = Overrides()
        self._registrations: dict[tuple[str, Any], Registration] = {}
        self._middleware: list[tuple[Callable[..., Any], str | Sequence[str]]] = []
        self._mounted: list[tuple[str, Server]] = []
        self._parents: list[tuple[str, Server]] = []
        self._threads: Any = None
        self.tools: Registry[Any] = Registry(self, "tools", "Tool")
        self.resources: Registry[Any] = Registry(self, "resources", "Resource")
        self.resource_templates: Registry[Any] = Registry(self, "templates", "ResourceTemplate")
        self.prompts: Registry[Any] = Registry(self, "prompts", "Prompt")

    def __class_getitem__(cls, item: Any) -> Any:
        from types import GenericAlias

        return GenericAlias(cls, item)

    def __getattr__(self, name: str) -> Any:
        from ._foreign import foreign_attribute

        raise foreign_attribute("server", "Server", name)

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    # ── registration ─────────────────────────────────────────────────────────────────────────────────

    def tool(self, fn: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offers a function as a tool: `@app.tool`, `@app.tool("name", …)` or `app.tool(fn, name=…)`."""
        return self._decorated("tool", self._add_tool, fn, name, options)

    def resource(self, uri: str, /, **options: Any) -> Any:
        """Offers what a function returns under a URI, or under every URI that a template gives."""
        if not isinstance(uri, str):
            raise TypeError("a resource needs its URI: write @app.resource('shelf://books/{id}') above the function")
        _options.check("resource", options, f"resource {uri!r}")

        def decorate(fn: Any) -> Any:
            self._add_resource(fn, uri, options)
            return fn

        return decorate

    def prompt(self, fn: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offers a function as a prompt, as `tool` does."""
        return self._decorated("prompt", self._add_prompt, fn, name, options)

    def complete(self, target: str, argument: str, /) -> Any:
        """Completes an argument of a prompt, or a variable of a resource template."""
        if not isinstance(target, str) or not isinstance(argument, str):
            raise TypeError(
                "complete takes a prompt's name or a template, and the argument: @app.complete('review', 'code')"
            )

        def decorate(fn: Any) -> Any:
            registration = Registration(self, "completions", (target, argument), self._plan("completion", fn), {})
            self._add(registration)
            return fn

        return decorate

    def method(self, name: str, /) -> Any:
        """Serves a request of a vendor's own, "acme/thing"."""
        return self._vendor("method", "methods", name)

    def notification(self, name: str, /) -> Any:
        """Listens to a notification of a vendor's own."""
        return self._vendor("notification", "notifications", name)

    def on_roots_changed(self, fn: Any, /) -> Any:
        """Is called when the client's roots have changed (legacy)."""
        return self._vendor("notification", "notifications", _ROOTS_CHANGED)(fn)

    def middleware(self, fn: Any = None, /, *, on: str | Sequence[str] = "*") -> Any:
        """Runs an async function around handlers: of all methods, or `on` those named."""

        def decorate(middleware: Any) -> Any:
            if not callable(middleware):
                raise TypeError(f"middleware is an async function (request, next), not {type(middleware).__name__}")
            self._middleware.append((middleware, on))
            for registration in self._reached():
                if applies(on, registration.method):
                    registration.wrap()
            return middleware

        return decorate if fn is None else decorate(fn)

    def override(self, dependency: Callable[..., Any], fake: Callable[..., Any], /) -> AbstractContextManager[None]:
        """Inside the `with` block, `fake` is called in place of `dependency`."""
        return self._overrides.override(dependency, fake)

    def mount(self, prefix: str, other: Server, /) -> None:
        """Offers all that another server offers, now and later: its tools and prompts as `prefix_name`."""
        if not isinstance(other, Server):
            raise TypeError(f"mount takes a prefix and a Server, not {type(other).__name__}")
        if other is self or any(server is self for server in other._below()):
            raise ValueError(f"{other.name!r} can't be mounted into {self.name!r}: it would contain itself")
        self._mounted.append((prefix, other))
        other._parents.append((prefix, self))
        for registration in list(other._reached()):
            self._offer(registration, self._key_of(registration))

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────

    def notify_updated(self, uri: str, /) -> None:
        """Tells who subscribed to this resource that it changed. Over stdio nobody can: then it does nothing."""
        if not isinstance(uri, str):
            raise TypeError(f"notify_updated takes a URI, not {type(uri).__name__}")

    def notify_url_done(self, elicitation_id: str, /) -> None:
        """Tells the client that what `elicit_url` sent somebody to is finished."""
        if not isinstance(elicitation_id, str):
            raise TypeError(f"notify_url_done takes an elicitation's id, not {type(elicitation_id).__name__}")

    # ── running ──────────────────────────────────────────────────────────────────────────────────────

    def run(self, at: str = "stdio", /, *, workers: int = 1, **http: Any) -> None:
        """Serves until the client is gone or a signal comes."""
        _only_stdio(at, http, workers)
        from ._run import run_stdio

        run_stdio(self)

    async def serve(self, at: Any = "stdio", /, **http: Any) -> None:
        """`run` inside an event loop that runs already."""
        _only_stdio(at, http)
        from ._serving import serve_stdio

        await serve_stdio(self)

    def listen(self, at: str, /, **http: Any) -> AbstractAsyncContextManager[Any]:
        """Serves at an address inside an `async with` block."""
        raise _no_http(at)

    def asgi(self, **http: Any) -> Callable[..., Coroutine[Any, Any, None]]:
        """This server as an ASGI app."""
        raise _no_http("ASGI")

    async def aclose(self) -> None:
        """Leaves the lifespan of a mounted server; twice is fine."""
        await self._lifespan.aclose()

    # ── within the package ───────────────────────────────────────────────────────────────────────────

    def _decorated(
        self, kind: str, add: Callable[..., None], fn: Any, name: str | None, options: dict[str, Any]
    ) -> Any:
        if isinstance(fn, str):
            if name is not None:
                raise TypeError(f"a {kind} has one name: {fn!r} or name={name!r}")
            fn, name = None, fn
        _options.check(kind, options, f"{kind} {name!r}" if name else f"@app.{kind}")

        def decorate(fn: Any) -> Any:
            add(fn, name, options)
            return fn

        return decorate if fn is None else decorate(fn)

    def _plan(self, kind: Any, fn: Any, **more: Any) -> Plan:
        return make_plan(
            kind,
            fn,
            self,
            profile=self._options.get("schema_profile", "portable"),
            overrides=self._overrides,
            **more,
        )

    def _add_tool(self, fn: Any, name: str | None, options: dict[str, Any]) -> None:
        plan = self._plan("tool", fn, name=name, output=options.get("output", UNSET))
        self._add(Registration(self, "tools", plan.name, plan, options))

    def _add_prompt(self, fn: Any, name: str | None, options: dict[str, Any]) -> None:
        plan = self._plan("prompt", fn, name=name)
        self._add(Registration(self, "prompts", plan.name, plan, options))

    def _add_resource(self, fn: Any, uri: str, options: dict[str, Any]) -> None:
        plan = self._plan("resource", fn, name=options.get("name"))
        kind = "templates" if "{" in uri else "resources"
        if kind == "resources" and plan.parameters:
            wanted = ", ".join(map(repr, plan.parameters))
            raise TypeError(
                f"{plan.place} takes {wanted}, which {uri!r} does not give: "
                f"put {{{next(iter(plan.parameters))}}} into the URI"
            )
        if kind == "templates":
            _check_variables(plan, uri)
        registration = Registration(self, kind, uri, plan, options)
        if options.get("cache"):
            from ._cached import cached

            registration.invoke = cached(plan.invoke, plan.is_async, options["cache"])
        self._add(registration)

    def _vendor(self, kind: str, table: str, name: str) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"a {kind} needs its name: write @app.{kind}('acme/thing') above the function")

        def decorate(fn: Any) -> Any:
            self._add(Registration(self, table, name, self._plan(kind, fn), {}))
            return fn

        return decorate

    def _add(self, registration: Registration) -> None:
        self._offer(registration, registration.key)
        self._registrations[registration.kind, registration.key] = registration

    def _offer(self, registration: Registration, key: Any) -> None:
        """Registers with the native half, and with every server that this one is mounted into."""
        native, plan = self._native, registration.plan
        expose = tuple(registration.options.get("expose_errors", ())) + tuple(
            registration.server._options.get("expose_errors", ())
        )
        call = (registration.invoke, registration.is_async, expose)
        try:
            if registration.kind == "completions":
                handle = native.add_completion(key[0], key[1], *call)
            elif registration.kind == "methods":
                handle = native.add_method(key, *call)
            elif registration.kind == "notifications":
                handle = native.add_notification(key, *call)
            else:
                said = encode(_described(registration, key))
                handle = native.add(registration.kind, said, *call, registration.options.get("thread"))
        except ValueError as error:
            raise ValueError(f"{plan.place}: {error}") from None
        registration.handles.append(handle)
        if registration.wrapped is not None or any(
            applies(on, registration.method) for _, on in self._middleware_of(registration)
        ):
            registration.wrap()
        for prefix, parent in self._parents:
            parent._offer(registration, _prefixed(registration.kind, prefix, key))

    def _key_of(self, registration: Registration) -> Any:
        """What a registration of a server below is called here."""
        key = registration.key
        server = registration.server
        while server is not self:
            prefix, server = next((p, s) for p, s in server._parents if s is self or s in list(self._below()))
            key = _prefixed(registration.kind, prefix, key)
        return key

    def _below(self) -> Iterator[Server]:
        for _, server in self._mounted:
            yield server
            yield from server._below()

    def _reached(self) -> Iterator[Registration]:
        yield from list(self._registrations.values())
        for server in self._below():
            yield from list(server._registrations.values())

    def _middleware_of(self, registration: Registration) -> list[tuple[Callable[..., Any], str | Sequence[str]]]:
        own = [] if registration.server is self else registration.server._middleware
        return [*self._middleware, *own]

    def _everywhere(self, kind: str) -> Iterator[tuple[Server, str]]:
        """This server and those it is mounted into, with what stands before its names there."""
        yield self, ""
        for prefix, parent in self._parents:
            for server, before in parent._everywhere(kind):
                yield server, before + _prefixed(kind, prefix, "")

    def _check_visible(self, kind: str, names: Sequence[str], tags: Sequence[str], enabled: bool) -> None:
        """What nobody without credentials may see stays hidden where nobody has any."""
        if not enabled:
            return
        for (of, key), registration in self._registrations.items():
            chosen = key in names or any(tag in tags for tag in registration.options.get("tags", ()))
            if of == kind and chosen and not _is_visible(registration.options):
                raise ValueError(f"{key!r} can't be enabled: its visible= hides it from whoever has no credentials")

    def _executor(self) -> Any:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._options.get("threads", 32), "gudgeon-middleware")
        return self._threads


def _prefixed(kind: str, prefix: str, key: Any) -> Any:
    if kind in ("tools", "prompts"):
        return f"{prefix}_{key}"
    if kind == "completions" and "://" not in key[0]:
        return f"{prefix}_{key[0]}", key[1]
    return key


def _is_visible(options: Mapping[str, Any]) -> bool:
    visible = options.get("visible")
    return visible is None or bool(visible(None))


def _described(registration: Registration, key: Any) -> dict[str, Any]:
    """An offer as JSON says it, with our options."""
    from msgspec import Raw

    plan, options, kind = registration.plan, registration.options, registration.kind
    said: dict[str, Any] = {"description": plan.description} if plan.description else {}
    said |= _options.spec(options)
    if not _is_visible(options):
        said["enabled"] = False
    if kind == "tools":
        said |= {"name": key, "inputSchema": Raw(plan.input_schema)}
        if plan.output_schema is not None:
            said["outputSchema"] = Raw(plan.output_schema)
    elif kind == "prompts":
        said |= {"name": key, "arguments": plan.arguments}
    else:
        said |= {"name": plan.name, "uri" if kind == "resources" else "uriTemplate": key}
    return said


def _check_variables(plan: Plan, uri: str) -> None:
    from ._native import variables

    given: list[str] = variables(uri)
    for name, required in plan.parameters.items():
        if required and name not in given:
            raise TypeError(
                f"parameter {name!r} of {plan.place} is not in {uri!r}: it has {', '.join(given) or 'no variables'}"
            )
    unknown = [name for name in given if name not in plan.parameters]
    if unknown:
        raise TypeError(
            f"{plan.place} has no parameter {unknown[0]!r} for the variable in {uri!r}: add {unknown[0]}: str"
        )


def _only_stdio(at: Any, http: Mapping[str, Any], workers: int = 1) -> None:
    if at != "stdio":
        raise _no_http(at)
    if http or workers != 1:
        raise TypeError(f"{next(iter(http), 'workers')}= is for HTTP addresses: stdio takes no options")


def _no_http(at: Any) -> NotSupported:
    return NotSupported(
        f"this version serves stdio, not {at!r}", hint="app.run() serves stdio; put a stdio-to-HTTP gateway before it"
    )
