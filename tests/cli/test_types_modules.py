"""`gudgeon types`: modules pass the checkers of their language, and call the server."""

import ast
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SERVERS = Path(__file__).parent / "servers"
EVERYTHING = ROOT / ".interop/node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
TARGETS = {
    "shapes": [sys.executable, SERVERS / "shapes.py"],
    "hostile": [sys.executable, SERVERS / "hostile_names.py"],
    "shelf": [sys.executable, SERVERS / "shelf.py"],
    "docsearch": [sys.executable, ROOT / "examples/docsearch/python/server.py"],
    "everything": ["node", EVERYTHING, "stdio"],
}
if not EVERYTHING.exists():
    del TARGETS["everything"]
# Types of every shape in lines of every length, to see where lines are broken.
MANY = {f"many {seed}": [sys.executable, SERVERS / "many_types.py", seed] for seed in range(1, 5)}


def generate(gudgeon, target, language):
    outcome = gudgeon("types", f"--{language}", "--", *{**TARGETS, **MANY}[target])
    assert outcome.code == 0, outcome
    return outcome.out


def run(*words, cwd):
    done = subprocess.run(
        list(map(str, words)),
        cwd=cwd,
        capture_output=True,
        encoding="utf-8",
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def tool(name):
    return Path(sys.executable).with_name(name)


def generate_all(gudgeon, folder, language, suffix):
    """Writes a module for each server. Returns their paths."""
    paths = []
    for target in [*TARGETS, *MANY]:
        text = generate(gudgeon, target, language)
        assert text, target
        paths.append(folder / f"{target.replace(' ', '_')}{suffix}")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


@pytest.mark.parametrize("language", ["python", "typescript"])
@pytest.mark.parametrize("target", ["hostile", "many 1"])
def test_a_module_is_the_same_each_time(gudgeon, target, language):
    assert generate(gudgeon, target, language) == generate(gudgeon, target, language)


def test_python_passes_its_checkers_and_formatter(gudgeon, tmp_path):
    paths = generate_all(gudgeon, tmp_path, "python", ".py")
    run(tool("ruff"), "format", "--isolated", "--diff", *paths, cwd=tmp_path)
    run(tool("ruff"), "check", "--isolated", "--target-version", "py310", *paths, cwd=tmp_path)
    run(tool("mypy"), "--strict", "--python-version", "3.10", *paths, cwd=tmp_path)
    names = [path.name for path in paths]
    config = {"typeCheckingMode": "strict", "include": names, "pythonVersion": "3.10"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    run(tool("pyright"), "--pythonpath", sys.executable, "-p", tmp_path, cwd=tmp_path)
    run(sys.executable, "-c", "import " + ", ".join(path.stem for path in paths), cwd=tmp_path)


def compile_typescript(folder, *names):
    (folder / "node_modules").mkdir(exist_ok=True)
    link = folder / "node_modules/gudgeon"
    if not link.exists():
        link.symlink_to(ROOT)
    options = {
        "strict": True,
        "exactOptionalPropertyTypes": True,
        "noUncheckedIndexedAccess": True,
        "noUnusedLocals": True,
        "noUnusedParameters": True,
        "verbatimModuleSyntax": True,
        "erasableSyntaxOnly": True,
        "module": "nodenext",
        "target": "es2022",
        "lib": ["es2022", "esnext.disposable"],
        "types": ["node"],
        "typeRoots": [str(ROOT / "node_modules/@types")],
        "skipLibCheck": True,
        "outDir": "out",
    }
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "files": names}))
    run(ROOT / "node_modules/.bin/tsc", "-p", folder, cwd=folder)


def test_typescript_passes_its_compiler_and_formatter(gudgeon, tmp_path):
    paths = generate_all(gudgeon, tmp_path, "typescript", ".ts")
    run(ROOT / "node_modules/.bin/prettier", "--no-config", "--no-editorconfig", "--check", *paths, cwd=tmp_path)
    compile_typescript(tmp_path, *(path.name for path in paths))


def test_hostile_names_stay_in_strings_and_comments(gudgeon):
    text = generate(gudgeon, "hostile", "python")
    classes = [statement for statement in ast.parse(text).body if isinstance(statement, ast.ClassDef)]
    assert {type(statement) for statement in ast.parse(text).body} <= {
        ast.Expr,
        ast.ImportFrom,
        ast.If,
        ast.ClassDef,
        ast.AnnAssign,
        ast.Assign,
    }
    assert any(definition.name.startswith("Sync") for definition in classes) and "\u202e" not in text
    assert "\u202e" not in generate(gudgeon, "hostile", "typescript")


PYTHON = """
import asyncio

from gudgeon import Client
from gudgeon.client import SyncClient
from module import Address, Shapes, SyncShapes

TARGET = %r


async def run() -> None:
    async with Client(TARGET) as client:
        shapes = Shapes(client)
        home: Address = {"street": "Main", "zip": None}
        print((await shapes.greet({"person": {"name": "Ada", "address": home, "mood": "good"}})).data)
        print((await shapes.list_()).data)
        print((await shapes.read_one({"owner": "ada", "number": 3})).text)
        print((await shapes.prompt_draw({"subject": "a cat"})).messages[0].content.text)


asyncio.run(run())
with SyncClient(TARGET) as client:
    print(SyncShapes(client).depth({"node": {"children": [{}, {"children": [{}]}]}}, timeout=30).data)
"""

TYPESCRIPT = """
import { Client } from "gudgeon";
import { Shapes } from "./module.js";

const client = await Client.connect(%s);
const shapes = new Shapes(client);
const person = { name: "Ada", address: { street: "Main", zip: null }, mood: "good" } as const;
console.log((await shapes.greet({ person })).data);
console.log(JSON.stringify((await shapes.list()).data));
console.log((await shapes.readOne({ owner: "ada", number: 3 })).text);
const drawn = await shapes.promptDraw({ subject: "a cat" });
console.log(JSON.stringify(drawn.messages[0]));
const depth: number = (await shapes.depth({ node: { children: [{}, { children: [{}] }] } })).data;
console.log(depth);
await client.close();
"""


def test_a_python_module_calls_the_server(gudgeon, tmp_path):
    (tmp_path / "module.py").write_text(generate(gudgeon, "shapes", "python"), encoding="utf-8")
    (tmp_path / "main.py").write_text(PYTHON % list(map(str, TARGETS["shapes"])))
    out = run(sys.executable, "main.py", cwd=tmp_path)
    assert out.splitlines() == [
        "Hello Ada of Main",
        "[{'street': 'Main', 'zip': None}]",
        "ada 3",
        "Draw a cat in plain style.",
        "3",
    ]


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is missing")
def test_a_typescript_module_calls_the_server(gudgeon, tmp_path):
    (tmp_path / "module.ts").write_text(generate(gudgeon, "shapes", "typescript"), encoding="utf-8")
    (tmp_path / "main.ts").write_text(
        TYPESCRIPT % json.dumps({"command": sys.executable, "args": [str(SERVERS / "shapes.py")]})
    )
    compile_typescript(tmp_path, "main.ts", "module.ts")
    out = run("node", "out/main.js", cwd=tmp_path).splitlines()
    assert out[:3] == ["Hello Ada of Main", '[{"street":"Main","zip":null}]', "ada 3"]
    assert "Draw a cat in plain style." in out[3] and out[4] == "3"


def test_a_file_is_written_once_and_no_other_is_overwritten(gudgeon, shelf):
    path = gudgeon.home / "shelf.py"
    assert "Wrote" in gudgeon("types", shelf, "--out", path).out
    assert path.read_text().startswith('"""Client of the MCP server "shelf", version 1.0.\n')
    assert "up to date" in gudgeon("types", shelf, "--out", path).out
    path.write_text("import os\n")
    outcome = gudgeon("types", shelf, "--out", path)
    assert outcome.code == 10 and path.read_text() == "import os\n"
    outcome = gudgeon("types", shelf)
    assert outcome.code == 2 and "--python or --typescript" in outcome.err
