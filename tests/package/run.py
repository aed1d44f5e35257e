"""Installs the packages of target/package into empty environments, and tests them there as a new user would.

python3 tests/package/run.py
"""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "target/package"
VENV = OUT / "venv"
APP = OUT / "app"
# Packages that the snippets and their tests import, beside the package and its dependencies.
PYTHON_PACKAGES = ("mypy", "pydantic", "pytest", "pytest-asyncio")
NPM_PACKAGES = ("express", "hono", "zod")


def main():
    (wheel,) = OUT.glob("gudgeon-*.whl")
    (tarball,) = OUT.glob("gudgeon-*.tgz")
    run([sys.executable, "-m", "venv", "--clear", VENV])
    pip = [VENV / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run([*pip, wheel])
    alone = [VENV / "bin/python", "-W", "error", "-c", "import gudgeon, gudgeon.testing"]
    run(alone, OUT)
    run([*pip, "--constraint", ROOT / "tests/requirements.txt", *PYTHON_PACKAGES])

    APP.mkdir(exist_ok=True)
    (APP / "package.json").write_text('{ "type": "module" }\n')
    npm = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error"]
    run([*npm, tarball], APP)
    run(
        [
            "node",
            "--eval",
            'import("gudgeon"); import("gudgeon/auth"); import("gudgeon/testing/auth"); require("gudgeon")',
        ],
        APP,
    )
    versions = json.loads((ROOT / "package.json").read_text())["devDependencies"]
    run([*npm, *(f"{name}@{versions[name]}" for name in NPM_PACKAGES)], APP)

    # Not the paths of pyproject.toml, which lead to the package in this folder.
    options = ["-o", "pythonpath=tests/markdown tests/interop", "-o", "asyncio_mode=auto"]
    pytest = [VENV / "bin/python", "-m", "pytest", "-q", *options]
    return run([*pytest, "tests/package", "tests/markdown/test_markdown.py"], ROOT, check=False)


def run(command, cwd=OUT, check=True):
    """Runs a command that must succeed, and returns its exit status."""
    environment = {**os.environ, "NODE_MODULES": str(APP / "node_modules")}
    return subprocess.run([str(word) for word in command], cwd=cwd, env=environment, check=check).returncode


if __name__ == "__main__":
    sys.exit(main())
