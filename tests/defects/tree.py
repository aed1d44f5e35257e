"""Makes a copy of the repository in which every defect is compiled in behind a switch."""

from __future__ import annotations

import os
import posixpath
import subprocess
from pathlib import Path

from defects import Defect

ROOT = Path(__file__).resolve().parents[2]

RUST = """\
//! Tells which seeded defect is active in this process.

static ACTIVE: std::sync::LazyLock<String> =
    std::sync::LazyLock::new(|| std::fs::read_to_string({path}).unwrap_or_default());

pub(crate) fn is_active(name: &str) -> bool {{
    *ACTIVE == name
}}
"""
PYTHON = """\
from pathlib import Path

try:
    _active = Path({path}).read_text()
except OSError:
    _active = ""


def is_active(name):
    return name == _active
"""
TYPESCRIPT = """\
import {{ readFileSync }} from "node:fs";

const active = ((): string => {{
  try {{
    return readFileSync({path}, "utf8");
  }} catch {{
    return "";
  }}
}})();

export function isSeeded(name: string): boolean {{
  return name === active;
}}
"""
NODE_SOURCES = "bindings-node/ts"
# Nothing is measured, so all programs are built with one quick profile.
PROFILE = {
    "CARGO_INCREMENTAL": "1",
    "CARGO_PROFILE_DEV_DEBUG": "none",
    "CARGO_PROFILE_DEV_OPT_LEVEL": "1",
    "CARGO_PROFILE_TEST_OPT_LEVEL": "1",
}
# The folders of programs that tests start; in the copy they are all the one of the quick profile.
OTHER_PROFILES = ("release", "dist")


class Tree:
    """A copy of the repository."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self.target = self.path / "target"
        # The file with the name of the active defect. Its path is compiled in, for processes without an environment.
        self.switch = self.target / "active-defect"
        self.env = {key: value for key, value in os.environ.items() if key not in ("CARGO_TARGET_DIR", "VIRTUAL_ENV")}
        self.env |= PROFILE | {"VIRTUAL_ENV": str(self.path / ".venv")}
        # The command by its real path, which it writes into configurations.
        self.env["GUDGEON_COMMAND"] = str(self.target / "debug/gudgeon")
        self.python = self.path / ".venv/bin/python"

    def make(self, commit: str, defects: list[Defect]) -> None:
        """Checks the commit out, unless the copy is there already, and builds it with the defects."""
        if not self.path.exists():
            subprocess.run(["git", "worktree", "add", "--detach", self.path, commit], cwd=ROOT, check=True)
        (self.target / "debug").mkdir(parents=True, exist_ok=True)
        for profile in OTHER_PROFILES:
            if not (link := self.target / profile).is_symlink():
                link.symlink_to("debug")
        self.activate(None)
        self._insert(defects)
        self._build()

    def activate(self, defect: Defect | None) -> None:
        """Makes a defect active in processes that start from now on."""
        self.switch.write_text("" if defect is None else defect.name)

    def run(self, *command: str | Path) -> None:
        """Runs a command; if it fails, its output is shown. The switches cause warnings, which say nothing."""
        words = [str(word) for word in command]
        output = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        done = subprocess.run(words, cwd=self.path, env=self.env, check=False, text=True, **output)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}:\n{done.stdout}")

    def _insert(self, defects: list[Defect]) -> None:
        """Puts the defects and the switch into the sources. Files that stay the same keep their time."""
        sources: dict[str, str] = {}
        for defect in defects:
            if defect.file not in sources:
                sources[defect.file] = self._committed(defect.file)
            sources[defect.file] = defect.switched(sources[defect.file])
        path = '"' + str(self.switch) + '"'
        for file in list(sources):
            if file.endswith(".rs"):
                folder = file[: file.index("/src/") + len("/src/")]
                sources[f"{folder}seeded.rs"] = RUST.format(path=path)
                main = next(name for name in ("lib.rs", "main.rs") if (self.path / folder / name).exists())
                whole = sources.get(folder + main) or self._committed(folder + main)
                sources[folder + main] = whole if "\nmod seeded;" in whole else f"{whole}\nmod seeded;\n"
            elif file.endswith(".ts"):
                module = posixpath.relpath(f"{NODE_SOURCES}/model/seeded.js", posixpath.dirname(file))
                module = module if module.startswith(".") else f"./{module}"
                sources[file] = f'import {{ isSeeded }} from "{module}";\n{sources[file]}'
                sources[f"{NODE_SOURCES}/model/seeded.ts"] = TYPESCRIPT.format(path=path)
        for file, text in sources.items():
            _write(self.path / file, text)

    def _committed(self, file: str) -> str:
        shown = subprocess.run(
            ["git", "show", f"HEAD:{file}"], cwd=self.path, check=True, capture_output=True, text=True
        )
        return shown.stdout

    def _build(self) -> None:
        self.run("make", "--no-print-directory", "setup")
        packages = next(self.path.glob(".venv/lib/python*/site-packages"))
        _write(packages / "_seeded.py", PYTHON.format(path='"' + str(self.switch) + '"'))
        self.run("cargo", "build", "--quiet", "--workspace", "--bins", "--examples", "--lib")
        self.run(self.path / ".venv/bin/maturin", "develop", "--quiet")
        self.run("node", "bindings-node/build.mjs", "--profile", "dev")
        self.run("npm", "run", "--silent", "build:ts")
        self.run("npm", "run", "--silent", "build:examples")


def _write(path: Path, text: str) -> None:
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
