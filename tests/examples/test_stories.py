"""Every story of examples/ with the client in Python, against the servers of both languages."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def load_runner() -> Any:
    """By its path: `run` is too common a name to put on the import path of a whole test run."""
    spec = importlib.util.spec_from_file_location("run_stories", EXAMPLES / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runner = load_runner()


@pytest.mark.parametrize("server", runner.SERVERS)
@pytest.mark.parametrize("revision", runner.REVISIONS)
@pytest.mark.parametrize("way", runner.WAYS)
@pytest.mark.parametrize("name", runner.STORIES)
def test_story(name: str, way: str, revision: str, server: str) -> None:
    runner.play(name, way, revision, server)


def test_a_users_own_tests_pass() -> None:
    """In a pytest of their own, which finds the server beside the test as it does for users."""
    options = [
        "-q",
        "-p",
        "no:cacheprovider",
        "--override-ini=addopts=",
        "--override-ini=asyncio_mode=strict",
        str(EXAMPLES / "errors/python"),
    ]
    subprocess.run([sys.executable, "-m", "pytest", *options], cwd=ROOT, check=True)


def test_no_story_is_forgotten() -> None:
    told = sorted(path.parents[1].name for path in EXAMPLES.glob("*/python/story.py"))
    assert told == sorted(path.parents[1].name for path in EXAMPLES.glob("*/typescript/story.ts"))
    assert told == sorted(runner.STORIES)
    readme = (EXAMPLES / "README.md").read_text("utf-8")
    assert [name for name in told if f"[`{name}`]({name})" not in readme] == []
