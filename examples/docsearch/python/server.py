"""An MCP server that searches a folder of Markdown: `python server.py [folder]`, by default this repository's own."""

from __future__ import annotations

import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from index import Heading, Hit, Index, NoSuchDocument
from msgspec import Meta

from gudgeon import Completion, ProtocolError, ResourceNotFound, Server, SyncContext, ToolAnnotations

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[3]).resolve()
if not FOLDER.is_dir():
    sys.exit(f"docsearch: {FOLDER} is not a folder; give the folder that holds your Markdown files")
READ_ONLY = ToolAnnotations(read_only=True)

app = Server(
    "docsearch",
    version="1.0.0",
    instructions="Search the documents first, then read what was found.",
    expose_errors=(NoSuchDocument,),
)


@dataclass
class SearchResult:
    hits: list[Hit]


@dataclass
class Outline:
    path: str
    headings: list[Heading]


@dataclass
class Indexed:
    files: int
    sections: int


class Shelf:
    """The index of this process: created when it is first needed, replaced by `reindex`."""

    def __init__(self) -> None:
        self._index: Index | None = None
        self._lock = threading.Lock()

    def index(self, ctx: SyncContext, *, fresh: bool = False) -> Index:
        with self._lock:
            if self._index is None or fresh:
                self._index = Index(FOLDER, report=ctx.progress)
            return self._index


shelf = Shelf()


@app.tool(annotations=READ_ONLY)
def search(
    query: Annotated[str, "words to look for; any of them counts"],
    limit: Annotated[int, Meta(ge=1, le=50, description="at most so many hits")] = 10,
    *,
    ctx: SyncContext,
) -> SearchResult:
    """Search the documents. Hits are sections, best first."""
    return SearchResult(shelf.index(ctx).search(query, limit))


@app.tool(annotations=READ_ONLY)
def outline(path: Annotated[str, "a document's path, as search returns it"], ctx: SyncContext) -> Outline:
    """List a document's headings with their levels and lines."""
    return Outline(path, shelf.index(ctx).outline(path))


@app.tool(annotations=READ_ONLY)
def reindex(ctx: SyncContext) -> Indexed:
    """Read the folder again, after its files have changed."""
    index = shelf.index(ctx, fresh=True)
    return Indexed(len(index.documents), index.sections)


@app.resource("docs://{+path}", name="document", description="A document of the folder.", mime_type="text/markdown")
def document(path: str, ctx: SyncContext) -> str:
    try:
        return shelf.index(ctx).read(path)
    except NoSuchDocument as error:
        raise ResourceNotFound(f"docs://{path}", str(error)) from None


@app.prompt
def summarize(path: Annotated[str, "a document's path, as search returns it"], ctx: SyncContext) -> str:
    """Summarize a document."""
    try:
        text = shelf.index(ctx).read(path)
    except NoSuchDocument as error:
        raise ProtocolError(-32602, str(error)) from None
    return f"Summarize the document {path} in five sentences, then list its sections.\n\n{text}"


@app.complete("summarize", "path")
@app.complete("docs://{+path}", "path")
def paths(typed: str, arguments: dict[str, str], ctx: SyncContext) -> Completion:
    found = shelf.index(ctx).complete(typed)
    return Completion(found[:100], total=len(found), has_more=len(found) > 100)


if __name__ == "__main__":
    app.run()
