"""Makes the registrations of a server, and publishes them there and in the servers that it is mounted into."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from .._model.json import encode
from .._plan.depends import Overrides
from .._plan.plan import UNSET, Plan, make_plan
from .description import described
from .mounts import prefixed
from .options import checked as check_options
from .registration import PublishedComponent, Registration
from .registration_warnings import warn
from .routes import Route, routes_of
from .templates import check_variables, is_template
from .upstreams import Path, around_upstream, wrapped_kinds


class ComponentHost:
    """The part of `Server` that makes and keeps its registrations."""

    name: str
    _native: Any
    _options: dict[str, Any]
    _overrides: Overrides

    def __init__(self) -> None:
        self._published: dict[tuple[str, Any], PublishedComponent] = {}
        self._mounted: list[tuple[str, Any]] = []
        self._parents: list[tuple[str, Any]] = []
        # Also those of servers that are mounted into this one.
        self._routes: list[Route] = []
        # With their prefix here, and the servers between them and this one.
        self._upstreams: list[tuple[str, Any, Path]] = []
        self._upstream_parts: list[tuple[str, Path]] = []

    def _decorated(
        self, kind: str, add: Callable[..., None], fn: Any, name: str | None, options: dict[str, Any]
    ) -> Any:
        if isinstance(fn, str):
            if name is not None:
                raise TypeError(f"a {kind} has one name: {fn!r} or name={name!r}")
            fn, name = None, fn
        options = check_options(kind, options, f"{kind} {name!r}" if name else f"@app.{kind}")

        def decorate(fn: Any) -> Any:
            add(fn, name, options)
            return fn

        return decorate if fn is None else decorate(fn)

    def _plan(self, kind: Any, fn: Any, *, profile: Any = None, **more: Any) -> Plan:
        profile = profile or self._options.get("schema_profile", "portable")
        return make_plan(kind, fn, self, profile=profile, overrides=self._overrides, **more)

    def _add_tool(self, fn: Any, name: str | None, options: dict[str, Any]) -> None:
        plan = self._plan(
            "tool",
            fn,
            profile=options.get("schema_profile"),
            name=name,
            given=options.get("input"),
            output=options.get("output", UNSET),
        )
        if plan.names_questions and options.get("replay") == "forbid":
            raise TypeError(
                f"{plan.place} returns a question, as its annotation says, though its tool forbids being run again "
                '(replay="forbid"): call ctx.elicit, ctx.sample or ctx.roots instead, or remove replay="forbid"'
            )
        self._add(Registration(self, "tools", plan.name, plan, options))

    def _add_prompt(self, fn: Any, name: str | None, options: dict[str, Any]) -> None:
        plan = self._plan("prompt", fn, name=name)
        self._add(Registration(self, "prompts", plan.name, plan, options))

    def _add_resource(self, fn: Any, uri: str, options: dict[str, Any]) -> None:
        plan = self._plan("resource", fn, name=options.get("name"))
        kind = "templates" if is_template(uri) else "resources"
        if kind == "resources" and plan.parameters:
            wanted = ", ".join(map(repr, plan.parameters))
            raise TypeError(
                f"{plan.place} takes {wanted}, which {uri!r} does not give: "
                f"put {{{next(iter(plan.parameters))}}} into the URI"
            )
        if kind == "templates":
            check_variables(plan, uri)
        self._add(Registration(self, kind, uri, plan, options))

    def _vendor(self, kind: str, table: str, name: str) -> Any:
        if not isinstance(name, str):
            raise TypeError(f"a {kind} needs its name: write @app.{kind}('acme/thing') above the function")

        def decorate(fn: Any) -> Any:
            self._add(Registration(self, table, name, self._plan(kind, fn), {}))
            return fn

        return decorate

    def _add_route(self, fn: Any, path: str, methods: list[str], auth: bool, thread: bool | None) -> None:
        for route in routes_of(fn, path, methods, auth, thread):
            self._share_route(route)

    def _share_route(self, route: Route) -> None:
        """Registers a route here, and before with every server that this one is mounted into."""
        for server in reversed(self._above()):
            route.register(server._native)
            server._routes.append(route)

    def _add(self, registration: Registration) -> None:
        self._check_free(registration, registration.key)
        self._publish(registration, registration.key, ())

    def _check_free(self, registration: Registration, key: Any) -> None:
        """Raises ValueError for a key that is taken here or in a server that this one is mounted into."""
        if (registration.kind, key) in self._published:
            name = " ".join(key) if isinstance(key, tuple) else key
            kind = registration.kind.removesuffix("s")
            raise ValueError(
                f"{registration.plan.place}: a {kind} named {name!r} is already registered with {self.name!r}: "
                "give this one another name, or remove that one first"
            )
        for prefix, parent in self._parents:
            parent._check_free(registration, prefixed(registration.kind, prefix, key))

    def _publish(self, registration: Registration, key: Any, below: tuple[tuple[Any, Any], ...]) -> None:
        """Registers with the native half, and with every server that this one is mounted into."""
        native, plan = self._native, registration.plan
        expose = tuple(registration.options.get("expose_errors", ())) + tuple(
            registration.server._options.get("expose_errors", ())
        )
        call = (registration.invoke_as(key), registration.is_async, expose)
        try:
            if registration.kind == "completions":
                handle = native.add_completion(key[0], key[1], *call)
            elif registration.kind == "methods":
                handle = native.add_method(key, plan.input_schema.decode(), *call)
            elif registration.kind == "notifications":
                handle = native.add_notification(key, *call)
            else:
                if registration.options.get("visible") is not None:
                    from .visibility import visibility_filter

                    native.set_visibility_filter(visibility_filter(self._published))
                declaration = encode(described(registration, key))
                handle = native.add(registration.kind, declaration, *call, registration.options.get("thread"))
        except ValueError as error:
            raise ValueError(f"{plan.place}: {error}") from None
        path = ((self, key), *below)
        self._published[registration.kind, key] = PublishedComponent(registration, path, handle)
        for text in handle.warnings:
            warn(text)
        for prefix, parent in self._parents:
            parent._publish(registration, prefixed(registration.kind, prefix, key), path)

    def _add_upstream(self, prefix: str, upstream: Any, below: Path = ()) -> None:
        """Mounts an upstream server here, and into every server that this one is mounted into."""
        path: Path = (*below, (self, prefix))
        expose = tuple(self._options.get("expose_errors", ()))
        around = partial(around_upstream, path)
        for part in upstream._mount_into(self._native, prefix, around, expose):
            self._upstream_parts.append((part, path))
        self._upstreams.append((prefix, upstream, below))
        self._wrap_upstreams()
        for outer, parent in self._parents:
            parent._add_upstream(f"{outer}_{prefix}", upstream, path)

    def _wrap_upstreams(self) -> None:
        """Has middleware run around calls of upstream servers, as far as there is any."""
        for part, path in self._upstream_parts:
            self._native.wrap_upstream(part, wrapped_kinds(path))

    def _above(self) -> list[Any]:
        """Returns this server and those that it is mounted into, each once."""
        found: list[Any] = [self]
        for server in found:
            found += [parent for _, parent in server._parents if parent not in found]
        return found

    def _everywhere(self, kind: str) -> Iterator[tuple[Any, str]]:
        """Yields this server and those that it is mounted into, each with the prefix of its names there."""
        yield self, ""
        for prefix, parent in self._parents:
            for server, before in parent._everywhere(kind):
                yield server, before + prefixed(kind, prefix, "")

    def _tagged(self, kind: str, tags: Sequence[str]) -> list[str]:
        """Returns the keys of the components that have one of the tags."""
        return [
            key
            for (of, key), published in self._published.items()
            if of == kind and any(tag in tags for tag in published.registration.options.get("tags", ()))
        ]
