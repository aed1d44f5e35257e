"""The Model Context Protocol: servers and clients, every revision, on one Rust core.

Nothing is imported before it is used: `import gudgeon` costs next to nothing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:  # editors look here for the docstrings of what the stub declares
    from ._call.facts import Facts as _Facts  # noqa: F401
    from ._call.paths import resolve_inside as resolve_inside
    from ._model.names import Listening as Listening
    from ._schema.markers import Depends as Depends, Header as Header
    from ._server.middleware import Request as Request
    from ._server.registry import Registry as Registry
    from .context import (
        Context as Context,
        SyncContext as SyncContext,
        current_context as current_context,
        current_sync_context as current_sync_context,
    )
    from .server import Server as Server
del TYPE_CHECKING

_HOMES = {
    "server": ("Server",),
    "context": ("Context", "SyncContext", "current_context", "current_sync_context"),
    "_call.paths": ("resolve_inside",),
    "_server.middleware": ("Request",),
    "_server.registry": ("Registry",),
    "_schema.markers": ("Depends", "Header"),
    "middleware": ("Next",),
    "errors": (
        "AuthError",
        "CallTimeout",
        "Cancelled",
        "Declined",
        "McpError",
        "ProtocolError",
        "ResourceNotFound",
        "ToolError",
        "UrlElicitationRequired",
    ),
    "client": (
        "Client",
        "ClientGroup",
        "ClientRequest",
        "Command",
        "Retry",
        "Subscription",
        "SyncClient",
        "SyncClientGroup",
        "SyncSubscription",
        "Upstream",
    ),
    "_model.names": (
        "CallOptions",
        "ClientOptions",
        "HttpOptions",
        "Listening",
        "LogLevel",
        "PromptOptions",
        "ResourceOptions",
        "Revision",
        "ServerOptions",
        "Target",
        "ToolOptions",
        "Transport",
    ),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = ("ask", "auth", "errors", "middleware", "testing", "types", "context", "server", "client")


def __getattr__(name):
    from importlib import import_module

    home = _HOME.get(name)
    if home is not None:
        value = getattr(import_module(f"{__name__}.{home}"), name)
    elif name in _MODULES:
        value = import_module(f"{__name__}.{name}")
    elif name == "__all__":
        # Modules but `ask` stay out: their names are everybody's variables.
        value = [
            member for member in __dir__() if not member.startswith("_") and (member == "ask" or member not in _MODULES)
        ]
    elif name == "__version__":
        from importlib.metadata import version

        value = version("gudgeon")
    elif name.startswith("_"):
        raise AttributeError(f"module 'gudgeon' has no attribute {name!r}")
    else:
        types = import_module(f"{__name__}.types")
        if name not in types.__all__:
            import sys

            from ._model.other_sdks import foreign_name

            raise foreign_name(name, sys._getframe(1))
        value = getattr(types, name)
    globals()[name] = value
    return value


def __dir__():
    from .types import __all__ as types

    return sorted({*globals(), *_HOME, *_MODULES, *types})
