"""Every example in a docstring runs."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import gudgeon
from gudgeon import ask, errors, middleware, testing, types
from gudgeon.testing import auth as testing_auth

PACKAGE = Path(gudgeon.__file__).parent
HOMES = sorted(
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if path != PACKAGE / "__init__.py"
)
PUBLIC = {
    f"{home.__name__}.{name}": getattr(home, name)
    for home in (gudgeon, ask, errors, middleware, testing, testing_auth, types)
    for name in (dir(home) if home is gudgeon else vars(home))
    if not name.startswith("_")
}
OURS = {
    name: value
    for name, value in PUBLIC.items()
    if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("gudgeon")
}
# A method that only converts or that the language calls says nothing that its class does not.
TOLD_BY_THE_CLASS = {"to_dict", "from_dict"}


@pytest.mark.io
@pytest.mark.parametrize("home", HOMES)
def test_the_examples_of_docstrings_give_what_they_show(home: str) -> None:
    module = importlib.import_module(f"gudgeon.{home}")
    failed, _ = doctest.testmod(module, raise_on_error=False, optionflags=doctest.REPORT_NDIFF)
    assert failed == 0


def test_enough_examples_are_there() -> None:
    finder = doctest.DocTestFinder(exclude_empty=True)
    modules = [importlib.import_module(f"gudgeon.{home}") for home in HOMES]
    shown = {
        test.name.removeprefix(f"{module.__name__}.")
        for module in modules
        for test in finder.find(module)
        if test.examples
    }
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
