"""Servers that are given as files and modules: which interpreter runs them, and which server of the file is served."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVER = """
from gudgeon import Server
app = Server("shelf")
@app.tool
def add(a: int, b: int) -> int:
    return a + b
"""
SCRIPT = """
import { Server } from "gudgeon";
export const app = new Server("shelf");
const input = { type: "object", properties: { a: { type: "integer" }, b: { type: "integer" } } };
app.tool("add", { input }, ({ a, b }) => a + b);
"""
COMMON = SCRIPT.replace("import { Server } from", "const { Server } = require(").replace('"gudgeon";', '"gudgeon");')
COMMON = COMMON.replace("export const", "const") + "module.exports = { app };\n"

FORMS = {
    "defined.py": SERVER,
    "run.py": SERVER + "app.run()\n",
    "guarded.py": SERVER + 'if __name__ == "__main__":\n    app.run()\n',
    "asynchronous.py": SERVER + "import asyncio\nasyncio.run(app.serve())\n",
    "defined.mjs": SCRIPT,
    "run.mjs": SCRIPT + "await app.run();\n",
    "unawaited.mjs": SCRIPT + "void app.run();\n",
    "defined.cjs": COMMON,
}


@pytest.fixture
def project(gudgeon):
    """A folder in which the package gudgeon is installed for Node."""
    modules = gudgeon.folder / "node_modules"
    modules.mkdir()
    (modules / "gudgeon").symlink_to(ROOT)
    return gudgeon.folder


def call(gudgeon, target):
    return gudgeon("call", target, "add", "a:=1", "b:=2")


@pytest.mark.parametrize("name", FORMS)
def test_a_file_is_run_or_the_server_that_it_defines_is_served(gudgeon, project, name):
    (project / name).write_text(FORMS[name])
    assert call(gudgeon, name) == (0, "3\n", "")


@pytest.mark.parametrize(
    "target", ["several.py:app", "several:app", "several.mjs:app", "run.py:app", "run.mjs:app", "several.py:make"]
)
def test_a_server_is_named_after_a_colon(gudgeon, project, target):
    (project / "several.py").write_text(SERVER + 'other = Server("other")\ndef make():\n    return app\n')
    (project / "several.mjs").write_text(SCRIPT + 'export const other = new Server("other");\n')
    (project / "run.py").write_text(FORMS["run.py"])
    (project / "run.mjs").write_text(FORMS["run.mjs"])
    assert call(gudgeon, target) == (0, "3\n", "")


@pytest.mark.parametrize("suffix", ["py", "mjs"])
def test_several_servers_are_named_in_the_error(gudgeon, project, suffix):
    second = 'other = Server("other")\n' if suffix == "py" else 'export const other = new Server("other");\n'
    (project / f"several.{suffix}").write_text(FORMS[f"defined.{suffix}"] + second)
    outcome = call(gudgeon, f"several.{suffix}")
    assert outcome.code == 3 and "several servers: app, other" in outcome.err
    assert f"several.{suffix}:app" in outcome.err


@pytest.mark.parametrize(
    ("name", "text", "wanted"),
    [
        ("neither.py", "x = 1\n", "runs no server and defines none"),
        ("neither.mjs", "export const x = 1;\n", "runs no server and exports none"),
        ("broken.py", "def f(:\n", 'File "broken.py", line 1'),
        ("broken.mjs", "export const = 1;\n", "SyntaxError"),
        ("raises.py", "1 / 0\n", "ZeroDivisionError"),
        ("garbage.py", "print('hello')\n", "hello"),
    ],
)
def test_a_file_without_a_server_says_so(gudgeon, project, name, text, wanted):
    (project / name).write_text(text)
    outcome = call(gudgeon, name)
    assert outcome.code == 3 and wanted in outcome.err and outcome.out == ""
    # Only the user's own lines are in a traceback.
    assert "in run_file" not in outcome.err


IN_FUNCTION = {
    "py": "from gudgeon import Server\ndef main():\n    Server('a').run()\nmain()\n",
    "mjs": 'import { Server } from "gudgeon";\nasync function main() { await new Server("a").run(); }\nmain();\n',
}
WITHOUT_LIBRARY = {
    "py": "import sys\nfor line in sys.stdin:\n    raise SystemExit(line)\n",
    "mjs": 'process.stdin.on("data", () => process.exit(9));\n',
}


@pytest.mark.parametrize("stdin", ["a pipe", "/dev/null"])
@pytest.mark.parametrize("suffix", ["py", "mjs"])
def test_a_file_without_a_server_is_an_error_also_without_any_input(gudgeon, project, suffix, stdin):
    def run(name, text):
        (project / name).write_text(text)
        source = subprocess.DEVNULL if stdin == "/dev/null" else subprocess.PIPE
        environment = {**gudgeon.environment, "NODE_NO_WARNINGS": "1"}
        process = subprocess.Popen(
            gudgeon.words("run", name), stdin=source, stderr=subprocess.PIPE, cwd=project, env=environment, text=True
        )
        _, err = process.communicate(timeout=60)
        return process.returncode, err

    code, err = run(f"neither.{suffix}", "x = 1\n" if suffix == "py" else "export const x = 1;\n")
    assert code == 2 and f"neither.{suffix} runs no server and " in err, err
    # A server ends without an error.
    assert run(f"function.{suffix}", IN_FUNCTION[suffix]) == (0, "")
    assert run(f"foreign.{suffix}", WITHOUT_LIBRARY[suffix]) == (0, "")
    assert run(f"defined.{suffix}", FORMS[f"defined.{suffix}"]) == (0, "")


def test_a_missing_file_module_or_name_is_an_error(gudgeon, project):
    (project / "defined.py").write_text(SERVER)
    outcome = call(gudgeon, "missing.py")
    assert outcome.code == 2 and 'there is no file "missing.py"' in outcome.err and str(project) in outcome.err
    assert "no Python module 'missing'" in call(gudgeon, "missing:app").err
    assert "no variable 'nope'" in call(gudgeon, "defined.py:nope").err


def test_a_file_of_another_suffix_is_an_error_of_usage(gudgeon, project):
    (project / "server.rb").write_text("")
    outcome = call(gudgeon, "server.rb")
    assert outcome.code == 2 and ".py" in outcome.err


def test_arguments_environment_and_folder_are_the_programs_own(gudgeon, project):
    below = project / "below"
    below.mkdir()
    (below / "beside.py").write_text("word = 'beside'\n")
    (below / "server.py").write_text(
        SERVER.replace("return a + b", "return [word, sys.argv, os.environ['SECRET'], __file__]").replace("-> int", "")
        + "import os, sys\nfrom beside import word\n"
    )
    outcome = gudgeon("call", "below/server.py", "add", "a:=1", "b:=2", SECRET="s3cret")
    assert outcome.code == 0, outcome.err
    for word in ("beside", "below/server.py", "s3cret"):
        assert word in outcome.out
    assert "GUDGEON_RUNNER" not in outcome.out


def fake_python(folder, word):
    folder.mkdir(parents=True)
    python = folder / "python"
    python.write_text(f'#!/bin/sh\necho "python of {word}" >&2\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return folder.parent


def test_the_projects_environment_is_used_and_an_active_one_first(gudgeon, project):
    (project / "src").mkdir()
    (project / "src/server.py").write_text(SERVER)
    fake_python(project / ".venv/bin", "project")
    assert "python of project" in call(gudgeon, "src/server.py").err
    active = fake_python(project / "active/bin", "active")
    outcome = gudgeon("call", "src/server.py", "add", "a:=1", "b:=2", VIRTUAL_ENV=str(active))
    assert outcome.code == 0 and "python of active" in outcome.err


def test_uv_runs_a_locked_project(gudgeon, project):
    tools = fake_python(project / "tools", "uv").joinpath("tools")
    uv = tools / "uv"
    uv.write_text('#!/bin/sh\necho "uv $1 $2 $3" >&2\nshift 3\nexec "$@"\n')
    uv.chmod(0o755)
    (project / "uv.lock").write_text("")
    (project / "server.py").write_text(SERVER)
    path = f"{tools}{os.pathsep}{gudgeon.environment['PATH']}"
    outcome = gudgeon("call", "server.py", "add", "a:=1", "b:=2", PATH=path)
    assert outcome.code == 0 and f"uv run --project {project}" in outcome.err


def script(*dependencies):
    """Returns a server with the comment of a script (PEP 723)."""
    return f"# /// script\n# dependencies = {json.dumps(dependencies)}\n# ///\n{SERVER}"


def fake_uv(folder, sync="exit 0"):
    """Puts a uv on the path that writes down its arguments; its environments have the interpreter of the tests."""
    python = fake_python(folder / "environment/bin", "script").joinpath("bin/python")
    uv = folder / "uv"
    uv.write_text(
        f'#!/bin/sh\necho "$@" >> {folder}/log\n[ "$1" = python ] && echo {python} && exit\n'
        f'[ "$2" = --offline ] && exit {"1" if "online" in sync else "0"}\n{sync}\n'
    )
    uv.chmod(0o755)
    return f"{folder}{os.pathsep}"


@pytest.mark.parametrize("target", ["script.py", "script.py:app"])
def test_uv_runs_a_script_in_its_own_environment(gudgeon, project, target):
    (project / "script.py").write_text(script("nothing-of-this-name"))
    path = fake_uv(project / "tools") + gudgeon.environment["PATH"]
    active = fake_python(project / "active/bin", "active")
    outcome = gudgeon("call", target, "add", "a:=1", "b:=2", PATH=path, VIRTUAL_ENV=str(active))
    assert (outcome.code, outcome.out) == (0, "3\n") and "python of script" in outcome.err
    assert (project / "tools/log").read_text().splitlines() == [
        "sync --offline --quiet --script script.py",
        "python find --script script.py",
    ]


def test_uv_of_its_installer_is_found_in_the_home_folder(gudgeon, project):
    (project / "script.py").write_text(script("nothing-of-this-name"))
    fake_uv(gudgeon.home / ".local/bin")
    outcome = call(gudgeon, "script.py")
    assert (outcome.code, outcome.out) == (0, "3\n") and "python of script" in outcome.err


def test_uv_installs_what_is_missing_and_says_so(gudgeon, project):
    (project / "script.py").write_text(script("nothing-of-this-name"))
    path = fake_uv(project / "tools", "# online\necho 'Installed 1 package' >&2") + gudgeon.environment["PATH"]
    outcome = gudgeon("call", "script.py", "add", "a:=1", "b:=2", PATH=path)
    assert (outcome.code, outcome.out) == (0, "3\n") and "Installed 1 package" in outcome.err
    assert "sync --script script.py" in (project / "tools/log").read_text().splitlines()


def test_what_uv_cannot_install_is_an_error_with_its_words(gudgeon, project):
    (project / "script.py").write_text(script("nothing-of-this-name"))
    path = fake_uv(project / "tools", "# online\necho 'no solution' >&2; exit 1") + gudgeon.environment["PATH"]
    outcome = gudgeon("call", "script.py", "add", "a:=1", "b:=2", PATH=path)
    assert outcome.code == 3 and outcome.err.startswith("no solution\nerror: script.py: uv cannot install")
    assert "hint: `uv sync --script script.py`" in outcome.err


def without_uv(gudgeon, *words, **environment):
    """Runs a command where there is no uv."""
    return gudgeon(*words, PATH=str(Path(sys.executable).parent), **environment)


def without_packaging(project):
    """Makes a folder for the path of Python in which the package with the rules of versions can't be imported."""
    (project / "shadow/packaging").mkdir(parents=True)
    (project / "shadow/packaging/__init__.py").write_text("raise ImportError\n")
    return str(project / "shadow")


@pytest.mark.parametrize("compares", ["versions", "names"])
def test_without_uv_a_script_needs_an_interpreter_that_has_its_dependencies(gudgeon, project, compares):
    own = gudgeon.environment.get("PYTHONPATH", "")
    path = f"{without_packaging(project)}{os.pathsep}{own}" if compares == "names" else own
    (project / "script.py").write_text(script("msgspec>=0.1", "absent; python_version < '3'", "gudgeon[x]"))
    outcome = without_uv(gudgeon, "call", "script.py", "add", "a:=1", "b:=2", PYTHONPATH=path)
    assert outcome == (0, "3\n", ""), outcome
    (project / "script.py").write_text(
        script("msgspec", "nothing-of-this-name>=2", "nor_of.this @ https://a.example/b.whl")
    )
    outcome = without_uv(gudgeon, "call", "script.py", "add", "a:=1", "b:=2", PYTHONPATH=path)
    assert outcome.code == 3 and "script.py declares dependencies that" in outcome.err
    assert "does not have: nothing-of-this-name>=2, nor_of.this @ https://a.example/b.whl" in outcome.err
    assert "hint: install uv" in outcome.err
    assert without_uv(gudgeon, "run", "script.py", PYTHONPATH=path).code == 2


def test_without_uv_another_version_of_a_dependency_is_named(gudgeon, project):
    (project / "script.py").write_text(script("msgspec>=999", "not a dependency"))
    outcome = without_uv(gudgeon, "call", "script.py", "add", "a:=1", "b:=2")
    assert outcome.code == 3 and "msgspec>=999 (installed is " in outcome.err
    assert "'not a dependency' (which is not a dependency)" in outcome.err


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("# dependencies = ['a',,]", "script.py: line 2, column 23: "),
        ("# dependencies = 'a'", 'script.py: "dependencies" must be a list of strings'),
    ],
)
def test_a_wrong_comment_of_a_script_has_its_place(gudgeon, project, lines, message):
    (project / "script.py").write_text(f"# /// script\n{lines}\n# ///\n{SERVER}")
    outcome = without_uv(gudgeon, "call", "script.py", "add", "a:=1", "b:=2")
    assert outcome.code == 10 and outcome.err.startswith(f"error: {message}"), outcome


def fake_node(folder, version):
    """Puts a Node on the path that says it is this version."""
    folder.mkdir(parents=True, exist_ok=True)
    node = folder / "node"
    real = shutil.which("node")
    node.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo v{version} && exit\necho "ran node" >&2\nexec {real} "$@"\n'
    )
    node.chmod(0o755)
    return f"{folder}{os.pathsep}"


def test_typescript_without_a_loader_says_what_to_install(gudgeon, project):
    (project / "server.ts").write_text(SCRIPT)
    path = fake_node(project / "bin", "20.1.0") + gudgeon.environment["PATH"]
    outcome = gudgeon("call", "server.ts", "add", "a:=1", "b:=2", PATH=path)
    assert outcome.code == 3
    assert "this is Node 20.1" in outcome.err and "npm install --save-dev tsx" in outcome.err


# Loads a TypeScript file without types.
LOADER = """
export async function load(url, context, next) {
  return next(url, url.endsWith(".ts") ? { ...context, format: "module" } : context);
}
"""


@pytest.mark.parametrize("text", [SCRIPT, SCRIPT + "await app.run();\n"], ids=["defined", "run"])
def test_tsx_of_the_project_runs_typescript(gudgeon, project, text):
    (project / "server.ts").write_text(text)
    (project / "loader.mjs").write_text(LOADER)
    tsx = project / "node_modules/.bin/tsx"
    tsx.parent.mkdir()
    tsx.write_text(f'#!/bin/sh\nexec node --no-warnings --loader "file://{project}/loader.mjs" "$@"\n')
    tsx.chmod(0o755)
    path = fake_node(project / "bin", "22.17.0") + gudgeon.environment["PATH"]
    outcome = gudgeon("call", "server.ts", "add", "a:=1", "b:=2", PATH=path)
    assert (outcome.code, outcome.out) == (0, "3\n"), outcome.err


def test_a_new_node_runs_typescript_itself(gudgeon, project):
    (project / "server.ts").write_text(SCRIPT)
    path = fake_node(project / "bin", "22.18.0") + gudgeon.environment["PATH"]
    outcome = gudgeon("call", "server.ts", "add", "a:=1", "b:=2", PATH=path)
    assert "ran node" in outcome.err
