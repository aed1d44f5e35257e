"""The variables of a URI template must fit the function's parameters."""

from typing import Any

import pytest

from gudgeon import Server, SyncClient


@pytest.mark.parametrize(
    "uri, fix",
    [
        ("files://{path*}", r"'path\*' in 'files://\{path\*\}' is a list \(RFC 6570\), .* write '\{\+path\}' for one "),
        ("files://root{/path*}", r"write '\{/path\}' for one string, or declare path: list\[str\]$"),
        ("files://root{?path*}", r"write '\{\?path\}' for one string, or declare path: list\[str\]$"),
    ],
)
@pytest.mark.parametrize("kind", [str, int, str | None])
def test_a_variable_that_is_a_list_needs_a_parameter_that_takes_one(uri: str, fix: str, kind: Any) -> None:
    def read(path: kind) -> str:
        return repr(path)

    app = Server("files")
    with pytest.raises(TypeError, match=fix):
        app.resource(uri)(read)
    assert len(app.resource_templates) == 0


def test_the_fix_reads_slashes_as_well() -> None:
    app = Server("files")

    @app.resource("files://{+path}")
    def read(path: str) -> str:
        return f"one: {path}"

    @app.resource("lists://root{/path*}")
    def read_list(path: list[str]) -> str:
        return f"many: {path}"

    @app.resource("open://root{/path*}")
    def read_open(path: Any) -> str:
        return f"any: {path}"

    with SyncClient(app) as client:
        assert client.read_resource("files://a/b.txt").text == "one: a/b.txt"
        assert client.read_resource("lists://root/a/b.txt").text == "many: ['a', 'b.txt']"
        assert client.read_resource("open://root/a/b.txt").text == "any: ['a', 'b.txt']"
