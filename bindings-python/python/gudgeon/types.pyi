"""The value types of the protocol, in the newest revision's vocabulary."""

from ._content import Annotations as Annotations
from ._content import Audio as Audio
from ._content import Content as Content
from ._content import EmbeddedResource as EmbeddedResource
from ._content import File as File
from ._content import Icon as Icon
from ._content import Image as Image
from ._content import Other as Other
from ._content import ResourceLink as ResourceLink
from ._content import Text as Text
from ._content import ToolOutcome as ToolOutcome
from ._content import ToolUse as ToolUse
from ._content import content_from_dict as content_from_dict
from ._offers import ClientInfo as ClientInfo
from ._offers import Implementation as Implementation
from ._offers import Page as Page
from ._offers import Principal as Principal
from ._offers import Prompt as Prompt
from ._offers import PromptArgument as PromptArgument
from ._offers import Resource as Resource
from ._offers import ResourceTemplate as ResourceTemplate
from ._offers import Root as Root
from ._offers import Tool as Tool
from ._offers import ToolAnnotations as ToolAnnotations
from ._offers import _Offer as _Offer
from ._questions import Accepted as Accepted
from ._questions import Change as Change
from ._questions import ElicitRequest as ElicitRequest
from ._questions import InputRequired as InputRequired
from ._questions import ListChanged as ListChanged
from ._questions import LogMessage as LogMessage
from ._questions import Progress as Progress
from ._questions import RootsRequest as RootsRequest
from ._questions import SampleOptions as SampleOptions
from ._questions import SampleRequest as SampleRequest
from ._results import Completion as Completion
from ._results import Message as Message
from ._results import PromptResult as PromptResult
from ._results import ResourceContents as ResourceContents
from ._results import ResourceResult as ResourceResult
from ._results import SampleResult as SampleResult
from ._results import ToolResult as ToolResult
from ._results import assistant as assistant
from ._results import user as user
from ._value import Value as _Value

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
