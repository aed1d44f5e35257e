"""Plays the stories: `python examples/run.py [story …]`, by default all of them, each in every way.

A story is `async def story(*targets, revision)` in `<story>/python/story.py`. It is given a target for each process in
its `PROCESSES` (their environments; default: one process) and fails with an AssertionError where a server surprises it.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from gudgeon import Command, Target

HERE = Path(__file__).parent
STORIES = ("asking", "answering", "state", "changes", "results", "around", "errors")
WAYS = ("stdio", "http")
REVISIONS = ("2025-11-25", "2026-07-28")
SERVERS = ("python", "typescript")
PATIENCE = 60  # seconds for one story
URL = re.compile(r"http://127\.0\.0\.1:[1-9]\d*\S*")


def play(name: str, way: str, revision: str, server: str) -> None:
    """Runs one example with its own servers."""
    told = load(name)
    argv = server_command(name, server)
    with ExitStack() as running:
        targets: list[Target] = []
        for env in getattr(told, "PROCESSES", [{}]):
            env = {**os.environ, **env}
            targets.append(Command(*argv, env=env) if way == "stdio" else running.enter_context(serving(argv, env)))
        asyncio.run(asyncio.wait_for(told.story(*targets, revision=revision), PATIENCE))


def server_command(name: str, server: str) -> list[str]:
    if server == "python":
        return [sys.executable, str(HERE / name / "python/server.py")]
    return ["node", str(HERE / "dist" / name / "typescript/server.js")]


@contextmanager
def serving(argv: list[str], env: dict[str, str]) -> Generator[str]:
    """Starts a server on a free port; returns the URL that it writes to stderr."""
    command = [*argv, "http://127.0.0.1:0/mcp"]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        said: list[str] = []
        is_up = threading.Event()

        def read() -> None:
            assert process.stderr is not None
            for line in process.stderr:
                said.append(line)
                if URL.search(line):
                    is_up.set()
            is_up.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            is_up.wait(30)
            url = URL.search("".join(said))
            if url is None:
                raise RuntimeError(f"{' '.join(command)} did not say where it serves:\n{''.join(said)}")
            yield url[0]
        except BaseException:
            sys.stderr.write("".join(said))
            raise
        finally:
            process.terminate()
            reader.join()


def load(name: str) -> Any:
    """By its path: every story is called `story`."""
    path = HERE / name / "python/story.py"
    spec = importlib.util.spec_from_file_location(f"story_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def main() -> int:
    parser = argparse.ArgumentParser(description="Play the stories of examples/.")
    parser.add_argument("stories", nargs="*", metavar="story", help=f"one of {', '.join(STORIES)}")
    parser.add_argument("--way", choices=WAYS, action="append")
    parser.add_argument("--revision", choices=REVISIONS, action="append")
    parser.add_argument("--server", choices=SERVERS, action="append", help="the language of the server")
    chosen = parser.parse_args()
    failed = 0
    for name in chosen.stories or STORIES:
        for way in chosen.way or WAYS:
            for revision in chosen.revision or REVISIONS:
                for server in chosen.server or SERVERS:
                    start = time.monotonic()
                    try:
                        play(name, way, revision, server)
                        outcome = "ok"
                    except Exception as error:
                        import traceback

                        traceback.print_exception(error)
                        outcome, failed = "FAILED", failed + 1
                    took = time.monotonic() - start
                    print(f"{name:10} {way:6} {revision}  {server:11} {outcome}  {took:.1f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
