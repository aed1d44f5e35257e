"""Checks every code block of every Markdown file as it stands: type-checked or compiled, and run where it is a program.

A block that is a file has its name behind the language. `client*` is run and must print what its comments say, a
`server*` is served and called, `test_*` is run by pytest, and everything else is imported.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from ports import reserve_port
from snippets import ROOT, SNIPPETS, Snippet, documents, expected_output, in_language

from gudgeon import Command, SyncClient
from gudgeon.testing.auth import AuthorizationServer

# The last ones are configuration files, which tests/production runs.
LANGUAGES = {"python", "ts", "rust", "json", "sh", "text", "yaml", "nginx", "haproxy", "dockerfile"}
BINARIES = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "debug/examples"
# The front page of the crate's documentation: its blocks are doctests.
DOCTESTS = "core/README.md"
# Where the npm packages are installed. By default the library is the one of this folder.
MODULES = Path(os.environ.get("NODE_MODULES", ROOT / "node_modules"))
LIBRARY = MODULES / "gudgeon" if "NODE_MODULES" in os.environ else ROOT
PACKAGES = ["zod", "hono", "express"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder that holds the files of all snippets, one folder a document, with the packages that users install."""
    folder = tmp_path_factory.mktemp("snippets")
    for snippet in in_language("python", "ts"):
        path = place_of(folder, snippet)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(snippet.code, encoding="utf-8")
    modules = folder / "node_modules"
    modules.mkdir()
    (modules / "gudgeon").symlink_to(LIBRARY, target_is_directory=True)
    for name in PACKAGES:
        (modules / name).symlink_to(MODULES / name, target_is_directory=True)
    (folder / "package.json").write_text('{ "type": "module" }\n', encoding="utf-8")
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def compiled(folder: Path) -> Path:
    """The same folder with the JavaScript of all TypeScript snippets, which pass the compiler in its strictest mode."""
    options = {
        "module": "Node20",
        "target": "ES2023",
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "noUncheckedIndexedAccess": True,
        "lib": ["ES2023", "ESNext.Disposable", "DOM"],
        "types": ["node"],
        "typeRoots": [str(ROOT / "node_modules/@types")],
        "skipLibCheck": True,
    }
    config = {"compilerOptions": options, "include": ["**/*.ts"]}
    (folder / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
    run([ROOT / "node_modules/.bin/tsc", "-p", "."], folder)
    return folder


def place_of(folder: Path, snippet: Snippet) -> Path:
    return folder / snippet.document.removesuffix(".md").replace("/", "-").lower() / snippet.name


def run(command: list[object], cwd: Path) -> str:
    """Returns the standard output of a program that must succeed."""
    # `python3` is the interpreter that runs the tests.
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


# A server and a client of the README that need an authorization server and have a test of their own.
SIGNING_IN = ("protected.py", "signs_in.py")


def is_program(snippet: Snippet) -> bool:
    return snippet.name.startswith("client")


@pytest.mark.parametrize("snippet", SNIPPETS, ids=str)
def test_a_block_names_a_language_and_a_program_its_file(snippet: Snippet) -> None:
    assert snippet.language in LANGUAGES, f"write one of {sorted(LANGUAGES)} behind the opening fence"
    if snippet.language not in ("json", "sh", "text") and snippet.document != DOCTESTS:
        assert snippet.name, "write the file's name behind the language"


def test_the_readme_is_complete() -> None:
    named = {snippet.name for snippet in SNIPPETS if snippet.document == "README.md"}
    assert {f"{kind}.{suffix}" for kind in ("server", "client") for suffix in ("py", "ts", "rs")} <= named
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert text.count("\n") < 180
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert [link for link in links if not link.startswith("https://")] == [], "PyPI and npm need absolute links"


HOMES = [
    "",
    "core/src",
    "bindings-python/src",
    "bindings-python/python/gudgeon",
    "bindings-node/src",
    "bindings-node/ts",
]
MAPS = [document for document in documents() if document == "ARCHITECTURE.md" or document.startswith("docs/design/")]


@pytest.mark.parametrize("document", MAPS)
def test_files_that_the_maps_name_exist(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    named = re.findall(r"[\w./-]*[\w-]+\.(?:rs|py|ts|mjs)\b", text)
    missing = [name for name in named if not any((ROOT / home).joinpath(name).exists() for home in HOMES)]
    files = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    known = {Path(path).name for path in files}
    assert [name for name in missing if "/" in name or name not in known] == []


@pytest.mark.parametrize("document", documents())
def test_relative_links_lead_to_files(document: str) -> None:
    text = (ROOT / document).read_text(encoding="utf-8")
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]*)\)", text)]
    local = [link for link in links if link and not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (ROOT / document).parent.joinpath(link).exists()] == []


def test_python_passes_the_type_checker(folder: Path) -> None:
    for home in sorted({place_of(folder, snippet).parent for snippet in in_language("python")}):
        run([sys.executable, "-m", "mypy", "--strict", "--config-file=", "."], home)


@pytest.mark.parametrize(
    "snippet", [snippet for snippet in in_language("python") if snippet.name not in SIGNING_IN], ids=str
)
def test_python_runs(snippet: Snippet, folder: Path) -> None:
    path = place_of(folder, snippet)
    if is_program(snippet):
        expected = expected_output(snippet.code, "print")
        assert expected and run([sys.executable, path.name], path.parent).splitlines() == expected
    elif path.name.startswith("test_"):
        run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", path.name], path.parent)
    else:
        run([sys.executable, "-W", "error", "-c", f"import {path.stem}"], path.parent)


@pytest.mark.parametrize("snippet", in_language("ts"), ids=str)
def test_typescript_compiles_and_runs(snippet: Snippet, compiled: Path) -> None:
    path = place_of(compiled, snippet).with_suffix(".js")
    if is_program(snippet):
        expected = expected_output(snippet.code, "console.log")
        assert expected and run(["node", path.name], path.parent).splitlines() == expected
    elif not path.name.startswith("server"):
        run(["node", "--input-type=module", "--eval", f'await import("./{path.name}"); process.exit();'], path.parent)


@pytest.mark.parametrize("snippet", in_language("rust"), ids=str)
def test_rust_is_an_example_that_is_compiled(snippet: Snippet) -> None:
    if snippet.document == DOCTESTS:
        assert 'include_str!("../README.md")' in (ROOT / "core/src/lib.rs").read_text(encoding="utf-8")
        if not snippet.name:
            return
    document = Path(snippet.document).stem.lower()
    example = ROOT / "core/examples" / f"{document}_{snippet.name}"
    assert example.read_text(encoding="utf-8") == snippet.code, f"{example.name} and {snippet} differ"


def test_the_readmes_servers_answer_alike(compiled: Path) -> None:
    home = compiled / "readme"
    commands = [[sys.executable, "server.py"], ["node", "server.js"], [str(BINARIES / "readme_server")]]
    for command in commands:
        with SyncClient(Command(*command, cwd=home)) as client:
            assert client.server.name == "calculator"
            assert client.call_tool("add", {"a": 1, "b": 2}).data == 3, command


def test_the_readmes_client_signs_in_at_its_protected_server(tmp_path: Path) -> None:
    server, client = (
        next(snippet.code for snippet in SNIPPETS if snippet.document == "README.md" and snippet.name == name)
        for name in SIGNING_IN
    )
    assert [len(code.splitlines()) <= 6 for code in (server, client)] == [True, True]
    # A browser whose user agrees, and sees the last page.
    browser = tmp_path / "xdg-open"
    get = "urllib.request.urlopen(sys.argv[1], timeout=10).read().decode()"
    browser.write_text(
        f"#!{sys.executable}\nimport sys, urllib.request\nopen({str(tmp_path / 'page')!r}, 'w').write({get})\n"
    )
    browser.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    with AuthorizationServer(subject="ada") as provider:
        address = f"127.0.0.1:{reserve_port()}"
        code = server.replace("https://login.example.com", provider.issuer).replace("127.0.0.1:8000", address)
        serving = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
        try:
            assert serving.stderr is not None and "shelf serves" in serving.stderr.readline()
            code = client.replace("127.0.0.1:8000", address)
            command = [sys.executable, "-c", code]
            done = subprocess.run(
                command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False
            )
        finally:
            serving.terminate()
            serving.communicate(timeout=10)
    assert (done.returncode, done.stdout) == (0, "ada\n"), done.stderr
    page = tmp_path / "page"
    # The client does not wait for the browser.
    until = time.monotonic() + 10
    while not (page.exists() and "You are signed in" in page.read_text()):
        assert time.monotonic() < until, "the browser did not get the page"
        time.sleep(0.05)


def test_the_readmes_rust_client_succeeds(folder: Path) -> None:
    (snippet,) = [snippet for snippet in in_language("rust") if snippet.document == "README.md" and is_program(snippet)]
    assert "assert_eq!(sum, 3)" in snippet.code
    assert run([BINARIES / "readme_client"], folder / "readme") == ""


def test_the_rust_client_signs_in_at_the_server_for_tests(folder: Path) -> None:
    assert run([BINARIES / "authorization_test_sign_in"], folder) == ""


@pytest.mark.parametrize("snippet", in_language("json"), ids=str)
def test_json_is_valid(snippet: Snippet) -> None:
    json.loads(snippet.code)


@pytest.mark.parametrize("snippet", in_language("sh"), ids=str)
def test_shell_commands_name_targets_and_files_that_exist(snippet: Snippet) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    named = re.findall(r"\bmake ([a-z-]+)", snippet.code)
    assert set(named) <= targets
    files = re.findall(r"(?<![\w/.])((?:tests|examples|core|bindings-\w+)/[\w./-]+)", snippet.code)
    assert [file for file in files if "/dist/" not in file and not (ROOT / file).exists()] == []
