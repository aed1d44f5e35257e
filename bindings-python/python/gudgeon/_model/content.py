"""The content blocks of tools, prompts and sampling."""

from .value import (
    REQUIRED,
    Value,
    all_decoded,
    bytes_property,
    each,
    number,
    plain,
    read_object,
    received_bytes,
    string,
)


class Icon(Value):
    """An image that a host may show beside a name.

    Args:
        src: A URL, or a data: URI.
        mime_type: The media type, if `src` does not show it.
        sizes: Such as "48x48", or "any".
        theme: "light" or "dark": for which background it is made.

    Spec: Base Protocol › Icons.
    """

    _fields = {"src": REQUIRED, "mime_type": None, "sizes": (), "theme": None}
    _readers = {"sizes": lambda sizes: tuple(sizes.split()) if isinstance(sizes, str) else tuple(sizes)}

    def __init__(self, src, *, mime_type=None, sizes=(), theme=None):
        self._put({"src": src, "mime_type": mime_type, "sizes": tuple(sizes), "theme": theme})


class Annotations(Value):
    """The audience and importance of content.

    Args:
        audience: "user", "assistant", or both. Default: unspecified.
        priority: From 0 (may be left out) to 1 (needed).
        last_modified: ISO 8601.

    Spec: Server Features › Resources › Annotations.
    """

    _fields = {"audience": (), "priority": None, "last_modified": None}
    _readers = {"audience": tuple}

    def __init__(self, *, audience=(), priority=None, last_modified=None):
        self._put({"audience": tuple(audience), "priority": priority, "last_modified": last_modified})


class Content(Value):
    """One block of content; `from_dict` finds the kind by `type`."""

    type = ""
    _readers = {"annotations": Annotations.from_dict}

    def to_dict(self):
        return {"type": self.type, **super().to_dict()}

    @classmethod
    def from_dict(cls, data):
        return content_from_dict(data) if cls is Content else super().from_dict(data)


class Text(Content):
    """Plain text. Raises TypeError for anything but a str.

    >>> Text("hello", annotations=Annotations(audience=["user"])).to_dict()["annotations"]
    {'audience': ['user']}
    """

    type = "text"
    _fields = {"text": REQUIRED, "annotations": None, "meta": {}}
    _readers = {"annotations": Annotations.from_dict, "text": string}

    def __init__(self, text, *, annotations=None, meta=None):
        if not isinstance(text, str):
            raise TypeError(f"Text takes a str, not {type(text).__name__}")
        self._put({"text": text, "annotations": annotations, "meta": dict(meta or {})})


_FORMATS = {
    "jpg": "image/jpeg",
    "svg": "image/svg+xml",
    "tif": "image/tiff",
    "mp3": "audio/mpeg",
    "wave": "audio/wav",
    "m4a": "audio/mp4",
}
_MAGIC = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"BM", "image/bmp"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"OggS", "audio/ogg"),
    (b"fLaC", "audio/flac"),
)


def _sniff(data):
    if data[:4] == b"RIFF":
        return {b"WEBP": "image/webp", b"WAVE": "audio/wav"}.get(data[8:12])
    return next((mime for magic, mime in _MAGIC if data.startswith(magic)), None)


def _guess(path):
    from mimetypes import guess_type

    mime, encoding = guess_type(path)
    return None if encoding else mime


def _read(path):
    with open(path, "rb") as file:
        return file.read()


class _Media(Content):
    """Bytes and their media type."""

    _fields = {"data": REQUIRED, "mime_type": REQUIRED, "annotations": None, "meta": {}}
    _readers = {"annotations": Annotations.from_dict, "data": received_bytes, "mime_type": string}
    data = bytes_property("data")

    @classmethod
    def from_dict(cls, data):
        return all_decoded(super().from_dict(data))

    @classmethod
    def _received(cls, data):
        """Returns the value of a JSON object. Bytes that can't be decoded raise an error when they are read."""
        return super().from_dict(data)

    def _load(self, data, format, mime_type, annotations, meta):
        kind = type(self).__name__
        if mime_type is None and format is not None:
            mime_type = _FORMATS.get(format.lower(), f"{self.type}/{format.lower()}")
        if isinstance(data, str):
            raise TypeError(f"{kind} takes bytes or a path, not str: write {kind}(Path({data[:40]!r}))")
        if hasattr(data, "__fspath__"):
            mime_type = mime_type or _guess(data)
            data = _read(data)
        if not isinstance(data, (bytes, bytearray, memoryview)):
            raise TypeError(f"{kind} takes bytes or a path, not {data!r}")
        data = bytes(data)
        mime_type = mime_type or _sniff(data)
        if mime_type is None:
            raise ValueError(f"{kind}: the format of these bytes is unknown; pass format= or mime_type=")
        self._put({"data": data, "mime_type": mime_type, "annotations": annotations, "meta": dict(meta or {})})


class Image(_Media):
    """An image: bytes, or the path of a file that is read immediately.

    Args:
        data: bytes, or a Path.
        format: Such as "png". Default: recognised by the bytes or the file's name.
        mime_type: The whole media type, such as "image/png", in place of `format`.
        annotations, meta: `Annotations`, and the block's `_meta`.

    Raises:
        TypeError: The data is neither bytes nor a path.
        ValueError: The format is not recognised and not given.
        OSError: The file can't be read.

    Spec: Server Features › Tools › Image content.

    >>> Image(b"...", format="png").mime_type
    'image/png'
    """

    type = "image"

    def __init__(self, data, *, format=None, mime_type=None, annotations=None, meta=None):
        self._load(data, format, mime_type, annotations, meta)


class Audio(_Media):
    """Audio: bytes, or the path of a file that is read immediately; parameters and errors are those of `Image`.

    >>> Audio(b"ID3...").mime_type
    'audio/mpeg'
    """

    type = "audio"

    def __init__(self, data, *, format=None, mime_type=None, annotations=None, meta=None):
        self._load(data, format, mime_type, annotations, meta)


class EmbeddedResource(Content):
    """The contents of a resource, inline: `text=` or `blob=`, not both (ValueError). Spec: Tools › Embedded resources.

    >>> EmbeddedResource("shelf://1", text="Dune").contents()
    {'uri': 'shelf://1', 'text': 'Dune'}
    """

    type = "resource"
    _fields = {"uri": REQUIRED, "text": None, "blob": None, "mime_type": None, "annotations": None, "meta": {}}
    blob = bytes_property("blob")

    def __init__(self, uri, *, text=None, blob=None, mime_type=None, annotations=None, meta=None):
        if (text is None) == (blob is None):
            raise ValueError("EmbeddedResource needs either text= or blob=")
        self._put(
            {
                "uri": uri,
                "text": text,
                "blob": blob,
                "mime_type": mime_type,
                "annotations": annotations,
                "meta": dict(meta or {}),
            }
        )

    def contents(self):
        """Returns the resource inside, as JSON values."""
        parts = {
            "uri": self.uri,
            "mimeType": self.mime_type,
            "text": self.text,
            "blob": plain(self.__dict__["blob"]),
        }
        return {key: value for key, value in parts.items() if value is not None}

    def to_dict(self):
        out = {"type": "resource", "resource": self.contents()}
        if self.annotations is not None:
            out["annotations"] = self.annotations.to_dict()
        if self.meta:
            out["_meta"] = plain(self.meta)
        return out

    @classmethod
    def from_dict(cls, data):
        return all_decoded(cls._received(data))

    @classmethod
    def _received(cls, data):
        """Returns the value of a JSON object. Bytes that can't be decoded raise an error when they are read."""
        read_object("EmbeddedResource", data)
        inner = data.get("resource")
        read_object("EmbeddedResource.resource", inner)
        if "uri" not in inner:
            raise ValueError("EmbeddedResource.from_dict: 'resource.uri' is missing")
        blob, notes = inner.get("blob"), data.get("annotations")
        new = EmbeddedResource.__new__(EmbeddedResource)
        new._put(
            {
                "uri": inner["uri"],
                "text": None if inner.get("text") is None else string(inner["text"]),
                "blob": None if blob is None else received_bytes(blob),
                "mime_type": inner.get("mimeType"),
                "annotations": None if notes is None else Annotations.from_dict(notes),
                "meta": data.get("_meta") or {},
            }
        )
        return new


class File(EmbeddedResource):
    """A file on disk as an embedded resource: text where it is UTF-8 and of a textual type, else a blob."""

    def __init__(self, path, *, mime_type=None):
        from pathlib import Path

        where = Path(path)
        data, mime = where.read_bytes(), mime_type or _guess(where)
        text = None
        if mime is None or mime.startswith("text/") or mime.endswith(("json", "xml", "yaml", "javascript", "toml")):
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                pass
        blob = data if text is None else None
        mime = mime or ("text/plain" if blob is None else "application/octet-stream")
        super().__init__(where.absolute().as_uri(), text=text, blob=blob, mime_type=mime)


class ResourceLink(Content):
    """A resource that can be read, by its URI; `size` is in bytes. Spec: Tools › Resource links (2025-06-18 and later).

    >>> ResourceLink("shelf://1", name="Dune").to_dict()
    {'type': 'resource_link', 'uri': 'shelf://1', 'name': 'Dune'}
    """

    type = "resource_link"
    _fields = {
        "uri": REQUIRED,
        "name": REQUIRED,
        "title": None,
        "description": None,
        "mime_type": None,
        "size": None,
        "icons": (),
        "annotations": None,
        "meta": {},
    }
    _readers = {
        "uri": string,
        "name": string,
        "title": string,
        "description": string,
        "mime_type": string,
        "size": number,
        "annotations": Annotations.from_dict,
        "icons": each(Icon.from_dict),
    }

    def __init__(self, uri, *, name, title=None, description=None, mime_type=None, size=None, annotations=None):
        self._put(
            {
                "uri": uri,
                "name": name,
                "title": title,
                "description": description,
                "mime_type": mime_type,
                "size": size,
                "annotations": annotations,
            }
        )


class ToolUse(Content):
    """A tool call that the model requests, in sampling. Spec: Client Features › Sampling › Tools (2025-11-25)."""

    type = "tool_use"
    _fields = {"id": REQUIRED, "name": REQUIRED, "input": REQUIRED, "meta": {}}
    annotations = None

    def __init__(self, id, name, input):
        self._put({"id": id, "name": name, "input": input})


class ToolOutcome(Content):
    """The result of a tool call, in sampling."""

    type = "tool_result"
    _fields = {
        "tool_use_id": REQUIRED,
        "content": REQUIRED,
        "structured_content": None,
        "is_error": False,
        "meta": {},
    }
    annotations = None

    def __init__(self, tool_use_id, content, *, structured_content=None, is_error=False):
        self._put(
            {
                "tool_use_id": tool_use_id,
                "content": contents_of(content, "ToolOutcome"),
                "structured_content": structured_content,
                "is_error": is_error,
            }
        )


class Other(Content):
    """A content block of an unknown type, passed through unchanged."""

    _fields = {"raw": REQUIRED}
    annotations = None

    def __init__(self, raw):
        read_object("Other", raw)
        self._put({"raw": dict(raw)})

    @property
    def type(self):
        """The type in its JSON."""
        return self.raw.get("type", "")

    def to_dict(self):
        return plain(self.raw)

    @classmethod
    def from_dict(cls, data):
        return cls(data)


_KINDS = {
    **{kind.type: kind.from_dict for kind in (Text, ResourceLink, ToolUse, ToolOutcome)},
    **{kind.type: kind._received for kind in (Image, Audio, EmbeddedResource)},
}


def content_from_dict(data):
    """Returns the content block of a JSON object; an unknown type becomes `Other`. Bytes that can't be decoded raise an
    error when they are read.
    """
    read_object("Content", data)
    kind = data.get("type")
    return (_KINDS.get(kind, Other.from_dict) if isinstance(kind, str) else Other.from_dict)(data)


def contents_of(content, owner):
    """Returns a str, a Content, or several of them, as a tuple of Content."""
    if isinstance(content, (str, Content)):
        content = (content,)
    elif content is None:
        content = ()
    elif isinstance(content, (bytes, dict)) or not hasattr(content, "__iter__"):
        raise TypeError(
            f"{owner} takes str, content (Text, Image, …) or a list of them, not {type(content).__name__}: "
            "JSON belongs in structured_content="
        )
    out = []
    for item in content:
        if isinstance(item, str):
            item = Text(item)
        elif not isinstance(item, Content):
            raise TypeError(
                f"{owner} takes str and content (Text, Image, …), not {type(item).__name__} among them: "
                "JSON belongs in structured_content="
            )
        out.append(item)
    return tuple(out)


def text_of(content):
    """Returns all text content, joined by newlines."""
    return "\n".join(item.text for item in content if isinstance(item, Text))


ToolOutcome._readers = {"content": each(content_from_dict)}
