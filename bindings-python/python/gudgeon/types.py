"""The value types of the protocol, in the newest revision's vocabulary."""

from ._model.components import (
    ClientInfo,
    Implementation,
    Page,
    Principal,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Root,
    ServerInfo,
    Tool,
    ToolAnnotations,
)
from ._model.content import (
    Annotations,
    Audio,
    Content,
    EmbeddedResource,
    File,
    Icon,
    Image,
    Other,
    ResourceLink,
    Text,
    ToolOutcome,
    ToolUse,
    content_from_dict,
)
from ._model.http import HttpRequest, HttpResponse
from ._model.questions import (
    Accepted,
    Change,
    ElicitRequest,
    InputRequired,
    ListChanged,
    LogMessage,
    Progress,
    Reconnected,
    RootsRequest,
    SampleOptions,
    SampleRequest,
)
from ._model.results import (
    Completion,
    Message,
    PromptResult,
    ResourceContents,
    ResourceResult,
    SampleResult,
    ToolResult,
    assistant,
    user,
)

__all__ = [
    "Accepted",
    "Annotations",
    "Audio",
    "Change",
    "ClientInfo",
    "Completion",
    "Content",
    "ElicitRequest",
    "EmbeddedResource",
    "File",
    "HttpRequest",
    "HttpResponse",
    "Icon",
    "Image",
    "Implementation",
    "InputRequired",
    "ListChanged",
    "LogMessage",
    "Message",
    "Other",
    "Page",
    "Principal",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptResult",
    "Reconnected",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceResult",
    "ResourceTemplate",
    "Root",
    "RootsRequest",
    "SampleOptions",
    "SampleRequest",
    "SampleResult",
    "ServerInfo",
    "Store",  # noqa: F822 (see __getattr__)
    "Text",
    "Tool",
    "ToolAnnotations",
    "ToolOutcome",
    "ToolResult",
    "ToolUse",
    "assistant",
    "content_from_dict",
    "user",
]

for _name in __all__:
    _item = globals().get(_name)
    if getattr(_item, "__module__", "").startswith("gudgeon._"):
        _item.__module__ = "gudgeon.types"


def __getattr__(name):
    """Imports `Store` when it is first used, because it needs `typing`, which is slow to load."""
    if name != "Store":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ._model.store import Store

    Store.__module__ = __name__
    return Store
