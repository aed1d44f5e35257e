"""Variables of resources that are paths: no URI leads a handler out of its folder."""

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from gudgeon import Server, SyncClient
from gudgeon.errors import ResourceNotFound

CASES = json.loads(Path(__file__).parents[1].joinpath("resource_paths.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=[case["template"] + str(case.get("unchecked", "")) for case in CASES])
def test_paths_in_uris(case: dict[str, Any]) -> None:
    app = Server("files")
    options = {"paths": case.get("paths", []), "unchecked_paths": case.get("unchecked", [])}

    @app.resource(case["template"], **options)
    def read(path: str = "") -> str:
        return path

    with SyncClient(app) as client:
        for uri, path in case["reads"].items():
            assert client.read_resource(uri).text == path
        for uri in case["refuses"]:
            with pytest.raises(ResourceNotFound):
                client.read_resource(uri)


@pytest.mark.parametrize("kind", [Path, PurePosixPath, Path | None, list[Path]])
def test_a_parameter_that_is_a_path_is_checked(kind: Any) -> None:
    app = Server("files")
    is_list = kind == list[Path]

    @app.resource("files://{?path*}" if is_list else "files://{?path}")
    def read(path: kind) -> str:
        return str(path)

    @app.resource("any://{?path}", unchecked_paths=["path"])
    def read_any(path: Path) -> str:
        return str(path)

    with SyncClient(app) as client:
        assert "a/b" in client.read_resource("files://?path=a/b").text
        for uri in ("files://?path=../x", "files://?path=/etc/hostname", "files://?path=a%5Cb"):
            with pytest.raises(ResourceNotFound):
                client.read_resource(uri)
        assert client.read_resource("any://?path=/etc/hostname").text == "/etc/hostname"


def test_a_name_that_is_no_variable_is_refused() -> None:
    app = Server("files")

    def read(path: str) -> str:
        return path

    with pytest.raises(ValueError, match=r'"files://\{\+path\}" has no variable "paht".*: path'):
        app.resource("files://{+path}", unchecked_paths=["paht"])(read)
    with pytest.raises(ValueError, match="its variables: none"):
        app.resource("files://one", name="one", paths=["path"])(lambda: "one")
    with pytest.raises(TypeError, match=r'paths= must be a list of strings such as \["path"\], not'):
        app.resource("files://{+path}", paths="path")(read)
