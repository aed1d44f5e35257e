"""The packages as they are published: their content, and calls between the installed libraries of both languages."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import gudgeon

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target/package"
MODULES = Path(os.environ["NODE_MODULES"])
# In bytes: each package unpacked, without the command that both have as well; the command, which contains the same
# core; and a download.
MAX_LIBRARY = 20_000_000
MAX_COMMAND = 20_000_000
MAX_DOWNLOAD = 16_000_000
WHEEL_COMMAND = ".data/scripts/gudgeon"
NPM_COMMAND = "package/bin/gudgeon"

PYTHON_SERVER = """
from gudgeon import Server

app = Server("python")


@app.tool
def add(a: int, b: int) -> int:
    return a + b


app.run()
"""
NODE_SERVER = """
import { Server } from "gudgeon";
const app = new Server("node");
const input = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } };
app.tool("add", { input }, ({ a, b }) => a + b);
await app.run();
"""
NODE_CLIENT = """
import { Client } from "gudgeon";
const [command, ...args] = process.argv.slice(2);
const client = await Client.connect({ command, args });
console.log(client.server.name, (await client.callTool("add", { a: 1, b: 2 })).data);
await client.close();
"""
SERVERS = {"python": [sys.executable, "server.py"], "node": ["node", "server.mjs"]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("package")
    (folder / "server.py").write_text(PYTHON_SERVER)
    (folder / "server.mjs").write_text(NODE_SERVER)
    (folder / "client.mjs").write_text(NODE_CLIENT)
    (folder / "node_modules").symlink_to(MODULES, target_is_directory=True)
    return folder


def wheel():
    (path,) = OUT.glob("gudgeon-*.whl")
    return zipfile.ZipFile(path)


def tarball():
    (path,) = OUT.glob("gudgeon-*.tgz")
    return tarfile.open(path)


@pytest.mark.parametrize("crate", ["gudgeon", "gudgeon-cli"])
def test_a_published_crate_has_no_tests(crate):
    command = ["cargo", "package", "--list", "--allow-dirty", "--offline", "--package", crate]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    assert "src/lib.rs" in listed or "src/main.rs" in listed
    beside = {Path(path).parts[0] for path in listed} - {"src", "page"}
    assert beside <= {".cargo_vcs_info.json", "Cargo.lock", "Cargo.toml", "Cargo.toml.orig", "LICENSE", "README.md"}
    assert [path for path in listed if "tests" in Path(path).with_suffix("").parts] == []


def test_the_installed_package_is_tested():
    assert Path(gudgeon.__file__).is_relative_to(sys.prefix)
    assert sys.prefix == str(OUT / "venv")


def test_the_packages_are_small():
    assert (
        sum(member.file_size for member in wheel().infolist() if not member.filename.endswith(WHEEL_COMMAND))
        <= MAX_LIBRARY
    )
    assert sum(member.size for member in tarball().getmembers() if member.name != NPM_COMMAND) <= MAX_LIBRARY
    assert max(path.stat().st_size for path in [*OUT.glob("*.whl"), *OUT.glob("*.tgz")]) <= MAX_DOWNLOAD


def test_both_packages_have_the_same_small_command():
    (script,) = [member for member in wheel().infolist() if member.filename.endswith(WHEEL_COMMAND)]
    assert 0 < script.file_size <= MAX_COMMAND
    assert wheel().read(script) == tarball().extractfile(NPM_COMMAND).read()


def test_the_other_tests_have_run_the_files_of_the_packages():
    (script,) = [member for member in wheel().infolist() if member.filename.endswith(WHEEL_COMMAND)]
    assert wheel().read(script) == (ROOT / "target/release/gudgeon").read_bytes()
    (installed,) = ROOT.glob(".venv/lib/python*/site-packages/gudgeon")
    different = [
        name
        for name in wheel().namelist()
        if name.startswith("gudgeon/") and wheel().read(name) != (installed.parent / name).read_bytes()
    ]
    package = tarball()
    for member in package.getmembers():
        path = ROOT / member.name.removeprefix("package/")
        # Which npm writes anew.
        if path.name != "package.json" and package.extractfile(member).read() != path.read_bytes():
            different.append(member.name)
    assert different == []


def test_the_wheel_is_typed_and_holds_no_tests():
    names = wheel().namelist()
    assert "gudgeon/py.typed" in names and "gudgeon/_native.pyi" in names
    assert [name for name in names if not name.startswith(("gudgeon/", "gudgeon-"))] == []


def test_the_record_of_the_wheel_lists_each_file_once():
    (record,) = [name for name in wheel().namelist() if name.endswith(".dist-info/RECORD")]
    listed = [line.split(",")[0] for line in wheel().read(record).decode().splitlines()]
    assert sorted(listed) == sorted(wheel().namelist())


def test_the_npm_package_says_which_platforms_it_runs_on():
    manifest = subprocess.run(
        ["node", "-p", "const { os, cpu, libc } = require('gudgeon/package.json'); JSON.stringify([os, cpu, libc])"],
        cwd=MODULES.parent,
        check=True,
        capture_output=True,
        text=True,
    )
    assert re.fullmatch(r'\[\["\w+"\],\["\w+"\],(\["(glibc|musl)"\]|null)\]\n', manifest.stdout)


@pytest.mark.parametrize("pattern", ["_native*.so", "**/*.node", "bin/gudgeon"])
def test_compiled_code_contains_no_path_of_the_machine_that_built_it(pattern):
    folders = [Path(gudgeon.__file__).parent, MODULES / "gudgeon"]
    (library,) = [path for folder in folders for path in folder.glob(pattern)]
    content = library.read_bytes()
    found = {path for path in (f"{ROOT}/", f"{Path.home()}/", "/.cargo/", "/.rustup/") if path.encode() in content}
    assert found == set()


@pytest.mark.parametrize("server", SERVERS)
def test_python_calls_a_server_of_each_language(folder, server):
    with gudgeon.SyncClient(gudgeon.Command(*SERVERS[server], cwd=folder)) as client:
        assert client.server.name == server
        assert client.call_tool("add", {"a": 1, "b": 2}).data == 3


@pytest.mark.parametrize("server", SERVERS)
def test_node_calls_a_server_of_each_language(folder, server):
    command = ["node", "client.mjs", *SERVERS[server]]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    assert said.stdout == f"{server} 3\n"


@pytest.mark.parametrize("program", [Path(sys.prefix) / "bin/gudgeon", MODULES / ".bin/gudgeon"], ids=["wheel", "npm"])
@pytest.mark.parametrize("server", SERVERS)
def test_the_command_of_each_package_calls_a_server_of_each_language(folder, server, program):
    command = [program, "call", "add", "a:=1", "b:=2", "--", *SERVERS[server]]
    said = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=60)
    assert said.stdout == "3\n"
