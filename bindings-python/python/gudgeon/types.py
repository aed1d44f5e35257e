"""The value types of the protocol, in the newest revision's vocabulary."""

from ._content import (
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
from ._offers import (
    ClientInfo,
    Implementation,
    Page,
    Principal,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Root,
    Tool,
    ToolAnnotations,
    _Offer,
)
from ._questions import (
    Accepted,
    Change,
    ElicitRequest,
    InputRequired,
    ListChanged,
    LogMessage,
    Progress,
    RootsRequest,
    SampleRequest,
)
from ._results import (
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
from ._value import Value as _Value

SampleOptions = dict

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
    "Text",
    "Tool",
    "ToolAnnotations",
    "ToolOutcome",
    "ToolResult",
    "ToolUse",
    "_Offer",
    "_Value",
    "assistant",
    "content_from_dict",
    "user",
]

for _name in __all__:
    _item = globals()[_name]
    if getattr(_item, "__module__", "").startswith("gudgeon._"):
        _item.__module__ = "gudgeon.types"
