"""docsearch's index in Python against the cases that all three languages share."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
CASES: dict[str, Any] = json.loads((HERE / "cases.json").read_text("utf-8"))


def load_index() -> Any:
    """By its path: `index` is too common a name to put on the import path of a whole test run."""
    path = HERE.parents[1] / "examples/docsearch/python/index.py"
    spec = importlib.util.spec_from_file_location("docsearch_index", path)
    assert spec is not None and spec.loader is not None
    module = sys.modules["docsearch_index"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


docsearch = load_index()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    base = tmp_path_factory.mktemp("docsearch")
    root = base / "docs"
    for path, lines in CASES["documents"].items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes("\n".join(lines).encode())
    (base / "outside.md").write_text("# Outside pelican")
    (root / "outside.md").symlink_to(base / "outside.md")
    (root / "link.md").symlink_to(root / "README.md")
    (root / "linked").symlink_to(root / "guide")
    return root


@pytest.fixture(scope="module")
def index(folder: Path) -> Any:
    return docsearch.Index(folder)


def test_indexes_the_markdown_files_of_the_folder(index: Any) -> None:
    assert list(index.documents) == CASES["paths"]
    assert index.sections == CASES["sections"]


def test_reports_each_file_of_a_small_folder(folder: Path) -> None:
    seen: list[tuple[int, int, str]] = []
    docsearch.Index(folder, lambda *report: seen.append(report))
    total = len(CASES["paths"])
    assert seen == [(done, total, path) for done, path in enumerate(CASES["paths"], 1)]


def test_reports_a_large_folder_about_a_hundred_times(tmp_path: Path) -> None:
    for number in range(250):
        (tmp_path / f"{number}.md").write_text("# x")
    seen: list[int] = []
    docsearch.Index(tmp_path, lambda done, total, path: seen.append(done))
    assert seen == list(range(2, 251, 2))


@pytest.mark.parametrize("case", CASES["searches"], ids=lambda case: case["query"])
def test_search(index: Any, case: dict[str, Any]) -> None:
    hits = index.search(case["query"], case.get("limit", 10))
    assert [[hit.path, hit.title, hit.line] for hit in hits] == case["hits"]
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert hit.score > 0
        assert case.get("snippet", "") in hit.snippet
        assert 0 < len(hit.snippet.split()) <= 24


LONG_QUERIES = ["word " * 10_000, "w" * 100_000, " ".join(map(str, range(10_000)))]


@pytest.mark.parametrize("query", CASES["hostile_queries"] + LONG_QUERIES, ids=lambda query: repr(query[:20]))
def test_any_text_is_a_valid_query(index: Any, query: str) -> None:
    assert isinstance(index.search(query), list)


@pytest.mark.parametrize("path", CASES["unknown_paths"])
def test_only_indexed_documents_can_be_read(index: Any, path: str) -> None:
    with pytest.raises(docsearch.NoSuchDocument, match="There is no document"):
        index.read(path)
    with pytest.raises(docsearch.NoSuchDocument):
        index.outline(path)


def test_reads_what_was_indexed(index: Any) -> None:
    assert index.read("guide/café.md") == "# Das Café\nEin Ort für Kaffee."


@pytest.mark.parametrize("path", CASES["outlines"])
def test_outline(index: Any, path: str) -> None:
    assert [asdict(heading) for heading in index.outline(path)] == CASES["outlines"][path]


@pytest.mark.parametrize("case", CASES["completions"], ids=lambda case: case["typed"])
def test_complete(index: Any, case: dict[str, Any]) -> None:
    assert index.complete(case["typed"]) == case["paths"]


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "bad.md").write_bytes(b"# Ibis \xff\nnest")
    (tmp_path / "folder.md").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/\xff")
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff/unnamed.md")).write_text("# Ibis")
    index = docsearch.Index(tmp_path)
    assert [hit.title for hit in index.search("ibis")] == ["Ibis \ufffd"]
    assert list(index.documents) == ["bad.md"]
