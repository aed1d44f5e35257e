"""Paths that clients give, resolved inside a folder, by the table that all languages share."""

import json
from pathlib import Path

import pytest

import gudgeon
from gudgeon import Server, ToolError, resolve_inside

TABLE = json.loads(Path(__file__).parents[1].joinpath("paths_in_folder.json").read_text())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for file in TABLE["files"]:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("")
    for link, target in TABLE["links"].items():
        (tmp_path / link).symlink_to(target)
    return tmp_path.resolve()


def test_paths_resolve_inside_the_folder(root: Path) -> None:
    for path, inside in TABLE["resolves"].items():
        assert resolve_inside(root, path) == root / inside
        assert resolve_inside(str(root), path=path) == root / inside


def test_paths_that_lead_out_are_errors_for_the_model(root: Path) -> None:
    app = Server("files")

    @app.tool
    def read(path: str) -> str:
        return resolve_inside(root, path).read_text()

    with gudgeon.SyncClient(app) as client:
        assert client.call_tool("read", {"path": "inside/b.txt"}).text == ""
        for problem, paths in TABLE["refuses"].items():
            for path in paths:
                with pytest.raises(ToolError, match=problem):
                    resolve_inside(root, path)
                result = client.call_tool("read", {"path": path}, raise_on_error=False)
                assert result.is_error
                assert problem in result.text


def test_a_root_that_is_no_folder_is_an_error_of_the_program(root: Path) -> None:
    with pytest.raises(FileNotFoundError):
        resolve_inside(root / "missing", "a")
    with pytest.raises(NotADirectoryError):
        resolve_inside(root / "a/b.txt", "a")
