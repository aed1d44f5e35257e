"""`Server`: registers handlers, changes them while it runs, and serves them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from ._model.callables import check_takes
from ._model.json import encode
from ._model.string_list import string_list
from ._native import Server as NativeServer
from ._plan.depends import Overrides
from ._server import options as _options
from ._server.component_host import ComponentHost
from ._server.lifespan import Lifespan
from ._server.middleware import check_middleware, middleware_runner
from ._server.mounts import is_upstream, mount_arguments, prefixed
from ._server.registration import Registration
from ._server.registry import Registry
from ._serving.running import Running

__all__ = ["Server"]

_ROOTS_CHANGED = "notifications/roots/list_changed"


class Server(ComponentHost, Running):
    """An MCP server, which serves its handlers to any number of clients of every revision.

    Args:
        name: The name of the server (`serverInfo.name`).
        lifespan: A function of the server that returns a context manager, async or not. It is entered at the first
            start and left at the end; the value that it yields is `ctx.lifespan`.
        version: `serverInfo.version`. Default "".
        title, website_url, icons: Details that a host may show.
        instructions: A description of the server as a whole, for the model.
        extensions: The extensions that the server implements, such as `{"com.example/search": {}}`, with their
            settings. Clients see them in `client.server.capabilities`; `method` and `notification` register handlers
            for their methods. Default none.
        experimental: Capabilities that no specification defines, with their settings. Default none.
        page_size: Entries a page of a list. Default 100.
        expose_errors: Exception classes whose text the model may read, beside `ToolError`. Default none.
        debug: Whether clients see tracebacks. Default False, unless the environment variable `GUDGEON_DEBUG` is "1",
            which `gudgeon dev` sets.
        revisions: The protocol revisions that are spoken. Default all five.
        dialects: Older descriptions of the protocol that are understood as well: "0.7", "bare". Default none.
        schema_profile: "portable" (default) writes schemas without `$ref`, which many hosts misread; "full" keeps it.
        convert_arguments: Whether a string that a model sent in place of another value (`"5"`, `"[1, 2]"`) is decoded
            as JSON: only where the schema takes no string, at most 16 levels deep, and if the arguments are valid then.
            What a pydantic model converts by itself is not affected. Default True.
        list_ttl: Seconds for which a client may cache a list (2026-07-28). Default: not at all.
        max_message: Bytes a message may have. Default 16 MiB.
        threads: Threads for `def` handlers that are slow. Default 32.
        suspended_limit: Handlers that may be suspended until a later request brings their answers (2026-07-28). Beyond
            that the oldest are stopped, and run again from the top when the answers arrive. Default 1,000.
        suspended_threads: `def` handlers among them, each of which holds a thread beside `threads`. Default 32.
        suspended_ttl: Seconds for which a handler waits for its client's answer before it is stopped. The call then
            fails before 2026-07-28; from 2026-07-28 on it runs again from the top when the answer arrives. Default 300.
        state_ttl: Seconds within which a client must answer. Default 900.
        request_state_keys: Secrets, bytes or strings of at least 32 bytes, that seal the `requestState` that clients
            carry between the rounds of a call: the first one seals, all of them open. Servers of one name that share
            them can continue each other's calls. Default: those of the environment variable GUDGEON_STATE_KEYS,
            separated by commas, else those in the file that GUDGEON_STATE_KEYS_FILE names, else a random key of this
            process.
        request_state_keys_file: The path of a file of such keys, separated by commas or line breaks, in place of
            `request_state_keys`. It is read again within seconds after it has changed; if it can't be used then, an
            error is logged, and the keys that were read before stay in use. Default none.
        auth: The methods that authenticate callers over HTTP and WebSocket; stdio is not affected, and `tcp://` and
            `unix:` addresses are refused. The URL of an issuer whose JWTs are
            accepted, a `gudgeon.auth.Jwt`, `Introspection` or `ApiKeys`, a function
            `(token, request) -> Principal | None` (or an `async def`), or a list of these. Default: everyone may call.
        store: The state that servers share, see `docs/store.md`. "memory" is that of each process, and the default but
            for the workers of `run(url, workers=N)`, which share a file. "sqlite:path" is a file, for the processes of
            one machine, and "redis://host:6379" (also `rediss:`, `valkey:` and `valkeys:`, with user and password
            before the host) a server, for several machines; else an object with the methods of `gudgeon.types.Store`.
            Servers behind one address need the same.
        scope_implies: The scopes that a scope includes, such as `{"books:write": ["books:read"]}`. Default none.
        hide_unauthorized: Whether tools, resources and prompts are hidden from callers that lack their `scopes`: lists
            leave them out, and requests for them fail as for unknown ones. By default they are listed, and a call is
            answered with 403 and the scopes that the client has to ask for.
        max_request_state: Bytes of a `requestState`; a longer one leaves out the answers of earlier rounds. Default
            256 KiB.
        io_threads: Threads that do the IO of a server at an address. Default 1.

    Raises:
        TypeError: The name is not a string, or there is no such option.
        ValueError: The name is empty, or the value of an option is out of range.

    Spec: Base Protocol › Lifecycle; Server Features › Overview.

    >>> from gudgeon import Server, SyncClient
    >>> app = Server("shelf", version="1.2")
    >>> with SyncClient(app) as client:
    ...     client.server.name, client.server.version
    ('shelf', '1.2')
    """

    def __init__(self, name: str, *, lifespan: Callable[[Any], Any] | None = None, **options: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"Server takes its name first, not {type(name).__name__}: Server('shelf')")
        options = _options.checked("server", options, f"Server {name!r}")
        super().__init__()
        self.name = name
        self._options = options
        self._native = NativeServer(encode(_options.server_declaration(name, options)))
        self._verifiers: Any = None
        if options.get("auth") is not None or options.get("store") not in (None, "memory"):
            from ._server.authentication import set_methods

            self._verifiers = set_methods(
                self._native,
                options.get("auth"),
                options.get("scope_implies"),
                options.get("store"),
                f"Server {name!r}",
            )
        if lifespan is not None and not callable(lifespan):
            raise TypeError(
                f"Server {name!r}: lifespan= must be a function that returns a context manager, not {lifespan!r}"
            )
        if lifespan is not None:
            check_takes(lifespan, "server", f"Server {name!r}: the function of lifespan=")
        self._lifespan = Lifespan(self, lifespan)
        self._overrides = Overrides()
        self._middleware: list[tuple[Callable[..., Any], tuple[str, ...]]] = []
        self._threads: Any = None
        self._asgi_apps: list[Any] = []
        self.tools: Registry[Any] = Registry(self, "tools", "Tool")
        self.resources: Registry[Any] = Registry(self, "resources", "Resource")
        self.resource_templates: Registry[Any] = Registry(self, "templates", "ResourceTemplate")
        self.prompts: Registry[Any] = Registry(self, "prompts", "Prompt")

    def __class_getitem__(cls, item: Any) -> Any:
        from types import GenericAlias

        return GenericAlias(cls, item)

    def __getattr__(self, name: str) -> Any:
        from ._model.other_sdks import foreign_attribute

        raise foreign_attribute("server", "Server", name)

    def __repr__(self) -> str:
        return f"Server({self.name!r})"

    # ── registration ─────────────────────────────────────────────────────────────────────────────────

    def tool(self, fn: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offers a function as a tool: `@app.tool`, `@app.tool("name", …)` or `app.tool(fn, name=…)`.

        Type hints make the schemas, the docstring (Google, NumPy, Sphinx) the descriptions. A `def` gets a
        `SyncContext`, an `async def` a `Context`, under any parameter name. The function itself is returned.

        Args:
            name: Default: the function's name.
            title, description, icons, meta, tags: Details that clients see. Default description: the docstring's.
            annotations: `ToolAnnotations`, or a mapping of its fields: hints such as `read_only` (or `readOnlyHint`).
            timeout: Seconds after which a call is cancelled and answered with an error. Time in which the handler waits
                for its client's answer does not count (`suspended_ttl` bounds that). Default: no limit.
            concurrency: Calls that run at once; others wait. A handler that waits for its client's answer does not
                count, and is queued again before it continues. Default: no limit.
            replay: "forbid" never runs a call again from the top when the client's answers arrive: if the handler that
                asked no longer exists, the client gets an error. The handler can't return questions then. Default
                "allow".
            thread: For a `def`: True always runs it on a worker thread, False never does. Default: on a worker thread
                once it was slow. An `async def` that keeps the event loop for half a second or longer is named once in
                the log (logger "gudgeon").
            input: A JSON Schema in place of the one made from the parameters; arguments that are valid for it are
                passed by name.
            output: The type (or None) that makes the output schema. Default: the return annotation.
            expose_errors: As for the server, for this tool.
            unknown_arguments: "refuse" (default) refuses calls with arguments that the tool does not have, by name;
                "ignore" drops such arguments. With `input=`, its `additionalProperties` decides instead.
            convert_arguments, schema_profile: As for the server, for this tool.
            scopes: The scopes that a caller over HTTP needs. A caller that lacks one gets 403 with the list of all, so
                that its client can request them. Not checked over stdio. Default: none.
            visible: `(principal) -> bool`, called at every list and call: whether this principal (None if unknown) sees
                it and may call it. Default: everyone may.
            enabled: Whether it is listed and callable from the start. Default True.

        Raises:
            TypeError: A parameter has no schema, a context does not fit, or there is no such option.
            ValueError: The name is taken, or not allowed by the specification.

        Spec: Server Features › Tools.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("calculator")
        >>> @app.tool(timeout=5)
        ... def add(a: int, b: int = 1) -> int:
        ...     return a + b
        >>> with SyncClient(app) as client:
        ...     client.call_tool("add", {"a": 2}).data
        3
        """
        return self._decorated("tool", self._add_tool, fn, name, options)

    def resource(self, uri: str, **options: Any) -> Any:
        """Offers what a function returns as a resource, under a URI or a URI template (RFC 6570).

        The template's variables are passed as the function's parameters, converted to their types. A variable of the
        query may have a default. `{+path}` matches slashes as well; `{path*}` is a list.

        Args:
            uri: A URI or template, such as "shelf://about" or "shelf://books/{id}".
            name, title, description, icons, meta, tags: Details that clients see. Default name: the function's.
            mime_type: Default: "application/json" for JSON, else by the function's result.
            annotations, size: Hints for clients; the size in bytes.
            ttl: Seconds for which a client may cache it (2026-07-28). Default: not at all.
            cache_scope: "public" if shared caches may serve it to everyone, else "private" (2026-07-28). Default:
                "private" for a request with a principal or an `Authorization` header, else "public".
            cache: Seconds for which the server itself caches the function's result, by URI and principal, until
                `notify_updated` or a change of the resources. Calls at the same time share one run. Results that depend
                on a user's answer are not cached, and none are if middleware runs around "resources/read". Default: 0.
            paths: Variables of a template that are paths, besides `{+path}` and those whose parameter is a `Path`. With
                an absolute path, a drive letter, a backslash, NUL or ".." in one of them the URI is not found.
            unchecked_paths: Variables that take absolute paths too, such as a URL in `{+url}`.
            timeout, thread, scopes, visible, enabled: As for `tool`.

        Raises:
            TypeError: There is no URI, or parameters and variables don't fit each other.
            ValueError: The URI is taken, or is not a valid template.

        Spec: Server Features › Resources.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> @app.resource("shelf://books/{id}")
        ... def book(id: int) -> dict[str, int]:
        ...     return {"next": id + 1}
        >>> with SyncClient(app) as client:
        ...     client.read_resource("shelf://books/7").text
        '{"next":8}'
        """
        if not isinstance(uri, str):
            raise TypeError("a resource needs its URI: write @app.resource('shelf://books/{id}') above the function")
        options = _options.checked("resource", options, f"resource {uri!r}")

        def decorate(fn: Any) -> Any:
            self._add_resource(fn, uri, options)
            return fn

        return decorate

    def prompt(self, fn: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offers a function as a prompt, as `tool` does.

        It returns a str, a `Message`, a list of them, or a `PromptResult`.

        Args:
            name: Default: the function's name.
            title, description, icons, meta, tags, timeout, thread, scopes, visible, enabled: As for `tool`.

        Spec: Server Features › Prompts. Errors are those of `tool`.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> @app.prompt
        ... def review(title: str) -> str:
        ...     return f"Review {title}."
        >>> with SyncClient(app) as client:
        ...     client.get_prompt("review", {"title": "Emma"}).messages[0].text
        'Review Emma.'
        """
        return self._decorated("prompt", self._add_prompt, fn, name, options)

    def complete(self, target: str, argument: str) -> Any:
        """Completes an argument of a prompt, or a variable of a resource template.

        The function takes the text typed so far and optionally a mapping of the other arguments; it returns strings,
        best first, or a `Completion`. At most 100 are sent.

        Args:
            target: The name of a registered prompt, or a registered template.
            argument: The argument's or variable's name.

        Raises:
            TypeError: One of them is not a string.
            ValueError: There is no such target or argument, or it is completed already.

        Spec: Server Features › Utilities › Completion.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> @app.prompt
        ... def review(title: str) -> str:
        ...     return f"Review {title}."
        >>> @app.complete("review", "title")
        ... def titles(prefix: str) -> list[str]:
        ...     return [title for title in ("Dune", "Emma") if title.startswith(prefix)]
        >>> with SyncClient(app) as client:
        ...     client.complete("review", "title", "E").values
        ('Emma',)
        """
        if not isinstance(target, str) or not isinstance(argument, str):
            raise TypeError(
                "complete takes a prompt's name or a template, and the argument: @app.complete('review', 'code')"
            )

        def decorate(fn: Any) -> Any:
            registration = Registration(self, "completions", (target, argument), self._plan("completion", fn), {})
            self._add(registration)
            return fn

        return decorate

    def method(self, name: str) -> Any:
        """Serves a request of a vendor's own, such as "acme/thing": its params are the function's parameters.

        A method of the specification, such as "tools/list", replaces the built-in one: the function then returns the
        whole result as in 2026-07-28, which is converted for clients of older revisions.

        Args:
            name: A vendor's prefix and a name, or a method of the specification.

        Raises:
            TypeError: The name is not a string.
            ValueError: The name is taken, or can't be replaced ("initialize", "subscriptions/listen"). In a call,
                invalid params are -32602.

        Spec: Base Protocol › Messages › Requests.

        >>> from gudgeon import Server, SyncClient
        >>> app = Server("shelf")
        >>> @app.method("acme/count")
        ... def count(shelf: str) -> dict[str, int]:
        ...     return {shelf: 2}
        >>> with SyncClient(app) as client:
        ...     client.request("acme/count", {"shelf": "upper"})["upper"]
        2
        """
        return self._vendor("method", "methods", name)

    def notification(self, name: str) -> Any:
        """Handles a notification of a vendor's own; parameters and errors are those of `method`."""
        return self._vendor("notification", "notifications", name)

    def on_roots_changed(self, fn: Any) -> Any:
        """Registers a function that is called when the client's roots changed (up to 2025-11-25); `ctx.roots()` asks
        for them.

        Spec: Client Features › Roots.
        """
        return self._vendor("notification", "notifications", _ROOTS_CHANGED)(fn)

    def route(
        self, path: str, *, methods: Sequence[str] = ("GET",), auth: bool = False, thread: bool | None = None
    ) -> Any:
        """Answers HTTP requests beside the endpoint, such as a webhook, a status page or a download.

        The function takes an `HttpRequest`, or nothing, and returns a str, bytes, JSON values such as a dict, None
        (204), or an `HttpResponse`. A `def` runs on the server's threads, an `async def` on the event loop. An
        exception is answered with 500 and a reference to the log.

        Routes are served at addresses: by `run`, `serve` and `listen`. Host and origin are checked as for the endpoint,
        and the limits `max_body` and `max_in_flight` count for both. Middleware does not run around routes. Everything
        larger belongs into a web framework, in which `asgi()` mounts the server.

        Args:
            path: The exact path, such as "/hooks": no pattern, no query.
            methods: Some of "GET", "POST", "PUT", "PATCH", "DELETE". HEAD is answered as GET, without the body. Default
                GET.
            auth: Whether callers are authenticated as those of the endpoint, by `Server(auth=…)`; then
                `request.principal` is the caller. Default False: everyone may call.
            thread: As for `tool`.

        Raises:
            TypeError: An argument has another type, or the function takes something else.
            ValueError: The path or a method is not valid, both are taken, or the server is being served. A path with
                another use, such as that of the endpoint, is refused when it is served.

        >>> from gudgeon import HttpRequest, Server
        >>> app = Server("shelf")
        >>> @app.route("/hooks", methods=["POST"])
        ... def hook(request: HttpRequest) -> dict[str, int]:
        ...     return {"received": len(request.body)}
        >>> hook(HttpRequest("POST", "http://localhost/hooks", body=b"{}"))
        {'received': 2}
        """
        if not isinstance(path, str):
            raise TypeError("a route needs its path: write @app.route('/hooks', methods=['POST']) above the function")
        names = string_list(f"route {path!r}", "methods=", methods)
        if not names:
            raise TypeError(f"route {path!r}: methods= is empty; write ['GET']")

        def decorate(fn: Any) -> Any:
            self._add_route(fn, path, names, bool(auth), thread)
            return fn

        return decorate

    def middleware(self, fn: Any = None, /, *, on: str | Sequence[str] = "*") -> Any:
        """Runs an async function `(request, next)` around requests; `await next(request)` continues with the request.

        Its return value is the result: for a handler a `ToolResult`, `ResourceResult`, `PromptResult` or `Completion`,
        for a list a `Page`, else the JSON value. The first registered is the outermost. Around a mounted server,
        middleware of the outer servers runs first, and each sees the names of its own server.

        Args:
            on: Methods such as "tools/call", "tools/list" or "initialize", or "*" for all (default); a vendor's own may
                be registered later.

        Raises:
            TypeError: It is not an async function of two arguments, or `on` holds something else than names.
            ValueError: It would never run, because clients send no such request.

        >>> from gudgeon import Server, SyncClient, ToolError
        >>> app = Server("shelf")
        >>> _ = app.tool(lambda: "secret", name="peek")
        >>> @app.middleware(on="tools/call")
        ... async def guard(request, next):
        ...     raise ToolError(f"{request.params['name']} is locked")
        >>> with SyncClient(app) as client:
        ...     client.call_tool("peek", raise_on_error=False).text
        'peek is locked'
        """

        def decorate(middleware: Any) -> Any:
            check_middleware(middleware)
            methods = [on] if isinstance(on, str) else on
            if not isinstance(methods, (list, tuple, set, frozenset)) or not all(
                isinstance(method, str) for method in methods
            ):
                raise TypeError(f'on= takes a method, such as "tools/call", or a list of methods, not {on!r}')
            self._native.check_middleware(list(methods))
            self._middleware.append((middleware, tuple(methods)))
            for server in self._above():
                for published in list(server._published.values()):
                    published.wrap()
                server._wrap_upstreams()
            wanted = sorted({method for _, methods in self._middleware for method in methods})
            self._native.set_middleware(middleware_runner(self), wanted, tuple(self._options.get("expose_errors", ())))
            return middleware

        return decorate if fn is None else decorate(fn)

    def override(self, dependency: Callable[..., Any], fake: Callable[..., Any]) -> AbstractContextManager[None]:
        """Calls `fake` in place of `dependency` inside the `with` block, as `Depends` shows; also in servers that are
        mounted here, unless they have a fake of their own.
        """
        return self._overrides.override(dependency, fake)

    def mount(self, *given: Any, prefix: str | None = None, other: Server | None = None) -> None:
        """Offers everything that another server has, now and later: tools and prompts as `prefix_name`, URIs unchanged.

        The two arguments come in either order, or by keyword: `app.mount("shelf", shelf)`.

        Args:
            prefix: The prefix of its names here: letters, digits, "_", "-" and ".".
            other: The server, which can still be served by itself; or an `Upstream`, which a client reaches.

        Raises:
            TypeError: One of the two is missing, or of another type.
            ValueError: The server would contain itself, a name is taken, the prefix has other characters, `other` has
                `auth=`, or it has a lifespan while this server is being served.

        >>> from gudgeon import Server
        >>> app, shelf = Server("house"), Server("shelf")
        >>> app.mount("shelf", shelf)
        >>> _ = shelf.tool(lambda: "ok", name="tidy")
        >>> [tool.name for tool in app.tools]
        ['shelf_tidy']
        """
        prefix, child = mount_arguments(given, prefix, other, Server)
        if is_upstream(child):
            return self._add_upstream(prefix, child)
        if any(server is child for server in self._above()):
            raise ValueError(f"{child.name!r} can't be mounted into {self.name!r}: it would contain itself")
        for server in self._above():
            server._native.check_mount(child._native)
        late = self._lifespan.is_used and child._lifespan.first()
        if late:
            raise ValueError(
                f"the lifespan of {late!r} begins with that of {self.name!r}, which runs already: mount it before"
            )
        mounted = list(child._published.values())
        for published in mounted:
            key = prefixed(published.registration.kind, prefix, published.path[0][1])
            self._check_free(published.registration, key)
        for route in child._routes:
            self._share_route(route)
        self._mounted.append((prefix, child))
        child._parents.append((prefix, self))
        child._overrides.above.append(self._overrides)
        for server in self._above():
            server._native.declare_mounted(child._native)
        for published in mounted:
            key = prefixed(published.registration.kind, prefix, published.path[0][1])
            self._publish(published.registration, key, published.path)
        for inner, upstream, below in list(child._upstreams):
            self._add_upstream(f"{prefix}_{inner}", upstream, (*below, (child, inner)))

    # ── changes ──────────────────────────────────────────────────────────────────────────────────────

    def notify_updated(self, uri: str) -> None:
        """Notifies subscribers of this resource that it changed, and drops it from the `cache=`.

        Raises:
            TypeError: The URI is not a string.

        Spec: Server Features › Resources › Subscriptions.
        """
        if not isinstance(uri, str):
            raise TypeError(f"notify_updated takes a URI, not {type(uri).__name__}")
        for server in self._above():
            server._native.updated(uri)

    def notify_url_done(self, elicitation_id: str) -> None:
        """Notifies the client that the interaction at the URL of an `elicit_url` is complete (2025-11-25).

        Args:
            elicitation_id: The id that `elicit_url` returned.

        Raises:
            TypeError: It is not a string.

        Spec: Client Features › Elicitation › URL mode.
        """
        if not isinstance(elicitation_id, str):
            raise TypeError(f"notify_url_done takes an elicitation's id, not {type(elicitation_id).__name__}")
        for server in self._above():
            server._native.page_done(elicitation_id)

    def _executor(self) -> Any:
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(self._native.handler_threads, "gudgeon-reads")
        return self._threads
