"""Every example in the documentation runs: those of the docstrings, and the README's."""

import doctest
import importlib
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import gudgeon
from gudgeon import Context, Server, SyncClient, ask, errors, middleware, testing, types

README = Path(__file__).parents[2] / "README.md"
HOMES = sorted(path.stem for path in Path(gudgeon.__file__).parent.glob("*.py") if path.stem != "__init__")
PUBLIC = {
    f"{home.__name__}.{name}": getattr(home, name)
    for home in (gudgeon, ask, errors, middleware, testing, types)
    for name in (dir(home) if home is gudgeon else vars(home))
    if not name.startswith("_")
}
OURS = {
    name: it
    for name, it in PUBLIC.items()
    if (inspect.isclass(it) or inspect.isfunction(it)) and it.__module__.startswith("gudgeon")
}
# A method that only converts or that the language calls says nothing that its class does not.
TOLD_BY_THE_CLASS = {"to_dict", "from_dict"}


@pytest.mark.parametrize("home", HOMES)
def test_the_examples_of_docstrings_give_what_they_show(home: str) -> None:
    module = importlib.import_module(f"gudgeon.{home}")
    failed, _ = doctest.testmod(module, raise_on_error=False, optionflags=doctest.REPORT_NDIFF)
    assert failed == 0


def test_enough_examples_are_there() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(f"gudgeon.{home}") for home in HOMES]
    shown = {test.name.split(".", 2)[2] for module in modules for test in finder.find(module) if test.examples}
    wanted = {"Server", "Server.tool", "Server.resource", "Server.prompt", "Server.complete", "Server.middleware"}
    wanted |= {"Context", "SyncContext", "Client", "SyncClient", "SyncClient.call_tool", "SyncClientGroup", "Command"}
    wanted |= {"Retry", "Depends", "ToolResult", "Image", "ToolError", "elicit", "sample", "connect_sync"}
    assert wanted <= shown, wanted - shown


@pytest.mark.parametrize("name", sorted(OURS))
def test_what_is_public_says_what_it_is(name: str) -> None:
    it = OURS[name]
    assert it.__doc__, f"{name} has no docstring"
    if not inspect.isclass(it):
        return
    for member, value in inspect.getmembers(it):
        value = value.fget if isinstance(value, property) else value
        if member.startswith("_") or not inspect.isroutine(value) or member in TOLD_BY_THE_CLASS:
            continue
        if getattr(value, "__module__", "").startswith("gudgeon"):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


def blocks(heading: str, language: str = "python") -> list[str]:
    """The README's code under a heading."""
    text = README.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)
    assert found, f"README.md has no {language} under {heading!r}"
    return found


def test_the_first_server_is_short_and_works_pasted(tmp_path: Path) -> None:
    (server,) = blocks("A server in Python")
    assert sum(bool(line.strip()) for line in server.splitlines()) <= 10
    path = tmp_path / "server.py"
    path.write_text(server, encoding="utf-8")
    with SyncClient(path) as client:
        assert client.server.name == "calculator"
        assert client.list_tools()[0].description == "Add two numbers."
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3


def test_the_first_clients_work_with_it(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(blocks("A server in Python")[0], encoding="utf-8")
    sync, _, other = blocks("Clients")[0].partition("\n\nasync with")
    body = "\n".join(f"    {line}" for line in f"async with{other}".splitlines())
    program = f"import asyncio\n{sync}\nasync def main():\n{body}\nasyncio.run(main())\n"
    program = program.replace('"python"', repr(sys.executable))
    (tmp_path / "client.py").write_text(program, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "client.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout.split("\n")) == (0, ["3", "['add']", ""]), done.stderr


async def test_a_test_answers_what_handlers_ask(capsys: pytest.CaptureFixture[str]) -> None:
    app = Server("shelf")

    @app.tool
    async def remove(ctx: Context) -> str:
        return "gone" if await ctx.elicit("Delete it?", bool) else "kept"

    _, code = blocks("Clients")
    body = "\n".join(f"    {line}" for line in code.splitlines())
    scope: dict[str, Any] = {"app": app}
    exec(f"async def main():\n{body}", scope)
    await scope["main"]()
    assert capsys.readouterr().out == "kept\n"


def test_more_than_tools_does_what_it_says(tmp_path: Path) -> None:
    (server,) = blocks("More than tools")
    path = tmp_path / "server.py"
    path.write_text(f"{server}\napp.run()\n", encoding="utf-8")
    logged: list[object] = []
    progress: list[object] = []
    wanted = iter([False, True])
    with SyncClient(path, on_log=lambda it: logged.append(it.data), on_elicit=lambda _: next(wanted)) as client:
        assert client.read_resource("shelf://books/7").text == '{"id":7,"title":"Dune"}'
        assert client.get_prompt("review", {"title": "Emma"}).messages[0].text == "Review Emma."
        assert client.complete("review", "title", "D").values == ("Dune",)
        with pytest.raises(errors.ToolError, match=r"^Deep indexing is not wanted\.$"):
            client.call_tool("reindex", {"deep": True})
        assert client.call_tool("reindex", {"deep": True}).text == "done"
        logged.clear()
        client.set_log_level("info")
        result = client.call_tool("reindex", {"deep": False}, on_progress=lambda it: progress.append(it.message))
        assert result.text == "done"
    assert logged == ["indexing"] and progress == ["half way"]
