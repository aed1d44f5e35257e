"""The two sides of a connection, and tools, resources and prompts as clients see them."""

from .content import Annotations, Icon
from .value import REQUIRED, Value, boolean, each, number, read_object, string

_ICONS = each(Icon.from_dict)
_NAMES = {"name": string, "title": string, "description": string}
_OFFER = {"name": REQUIRED, "title": None, "description": None, "icons": (), "meta": {}}


class Implementation(Value):
    """A program's name and version. Spec: Base Protocol › Versioning › Implementation information.

    >>> Implementation("reader", "1.0", title="Reader").to_dict()
    {'name': 'reader', 'version': '1.0', 'title': 'Reader'}
    """

    _fields = {
        "name": REQUIRED,
        "version": REQUIRED,
        "title": None,
        "description": None,
        "website_url": None,
        "icons": (),
    }
    _readers = {"icons": _ICONS}

    def __init__(self, name, version, *, title=None, description=None, website_url=None, icons=()):
        self._put(
            {
                "name": name,
                "version": version,
                "title": title,
                "description": description,
                "website_url": website_url,
                "icons": tuple(icons),
            }
        )


class _Peer(Implementation):
    _fields = {**Implementation._fields, "capabilities": {}}

    def __init__(self, name, version, *, capabilities=None, **rest):
        super().__init__(name, version, **rest)
        self.__dict__["capabilities"] = dict(capabilities or {})


class ClientInfo(_Peer):
    """The client of a call: its `Implementation` and its `capabilities`, as plain JSON values."""


class ServerInfo(_Peer):
    """The server of a client: its `Implementation` and its `capabilities`, as plain JSON values."""


class Principal(Value):
    """The authenticated caller, named by the host of a mounted server: `subject`, `client_id`, `scopes`, `claims`."""

    _fields = {"subject": REQUIRED, "client_id": None, "scopes": frozenset(), "claims": {}}
    _readers = {"scopes": frozenset}

    def __init__(self, subject, *, client_id=None, scopes=(), claims=None):
        self._put(
            {"subject": subject, "client_id": client_id, "scopes": frozenset(scopes), "claims": dict(claims or {})}
        )


class ToolAnnotations(Value):
    """Hints about a tool's effects; None leaves a hint out.

    Args:
        title: The name for display.
        read_only: The tool changes nothing. Clients assume False without it.
        destructive: The tool may delete or overwrite. Clients assume True without it.
        idempotent: Another call with the same arguments changes nothing more. Clients assume False without it.
        open_world: The tool reaches external systems, such as the web. Clients assume True without it.

    Raises:
        TypeError: A hint is not True, False or None.

    Spec: Server Features › Tools › ToolAnnotations.

    >>> ToolAnnotations(read_only=True).to_dict()
    {'readOnlyHint': True}
    """

    _fields = {"title": None, "read_only": None, "destructive": None, "idempotent": None, "open_world": None}
    _readers = {
        "title": string,
        "read_only": boolean,
        "destructive": boolean,
        "idempotent": boolean,
        "open_world": boolean,
    }
    _hints = frozenset(_fields) - {"title"}

    def __init__(self, *, title=None, read_only=None, destructive=None, idempotent=None, open_world=None):
        hints = {"read_only": read_only, "destructive": destructive, "idempotent": idempotent, "open_world": open_world}
        for name, value in hints.items():
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"ToolAnnotations: {name}= is True, False or None, not {value!r}")
        self._put({"title": title, **hints})

    def to_dict(self):
        return {key if key == "title" else key + "Hint": value for key, value in super().to_dict().items()}

    @classmethod
    def from_dict(cls, data):
        read_object("ToolAnnotations", data)
        return super().from_dict({key.removesuffix("Hint"): value for key, value in data.items()})


class _Component(Value):
    _fields = _OFFER
    _readers = {**_NAMES, "icons": _ICONS}


class Tool(_Component):
    """A tool as clients see it. Spec: Server Features › Tools › Tool."""

    _fields = {**_OFFER, "input_schema": REQUIRED, "output_schema": None, "annotations": None}
    _readers = {**_Component._readers, "annotations": ToolAnnotations.from_dict}


class Resource(_Component):
    """A resource as clients see it; `size` in bytes. Spec: Server Features › Resources › Resource."""

    _fields = {**_OFFER, "uri": REQUIRED, "mime_type": None, "size": None, "annotations": None}
    _readers = {
        **_Component._readers,
        "uri": string,
        "mime_type": string,
        "size": number,
        "annotations": Annotations.from_dict,
    }


class ResourceTemplate(_Component):
    """A template (RFC 6570) as clients see it. Spec: Server Features › Resources › Resource templates."""

    _fields = {**_OFFER, "uri_template": REQUIRED, "mime_type": None, "annotations": None}
    _readers = {
        **_Component._readers,
        "uri_template": string,
        "mime_type": string,
        "annotations": Annotations.from_dict,
    }


class PromptArgument(Value):
    """An argument of a prompt; `required` is by default False."""

    _fields = {"name": REQUIRED, "title": None, "description": None, "required": False}
    _readers = {**_NAMES, "required": boolean}


class Prompt(_Component):
    """A prompt as clients see it. Spec: Server Features › Prompts › Prompt."""

    _fields = {**_OFFER, "arguments": ()}
    _readers = {**_Component._readers, "arguments": each(PromptArgument.from_dict)}


class Page(Value):
    """One page of a list: `items`, and the `next_cursor` or None."""

    _fields = {"items": REQUIRED, "next_cursor": None}

    def __init__(self, items, *, next_cursor=None):
        self._put({"items": tuple(items), "next_cursor": next_cursor})


class Root(Value):
    """A directory or file that a server may access; `uri` begins with "file://". Spec: Client Features › Roots."""

    _fields = {"uri": REQUIRED, "name": None, "meta": {}}

    def __init__(self, uri, *, name=None, meta=None):
        self._put({"uri": uri, "name": name, "meta": dict(meta or {})})
