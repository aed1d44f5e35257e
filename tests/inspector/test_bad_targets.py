"""Targets that are not servers: the page says why, and another can be chosen."""

import os
import subprocess
import sys

import pytest
from inspector import PROGRAM, SERVER

PROGRAMS = {
    "exits at once": ("import sys; sys.exit(7)", "7"),
    "prints garbage": ("import time; print('garbage', flush=True); time.sleep(600)", "timeout"),
    "never answers": ("import time; time.sleep(600)", "timeout"),
}


@pytest.mark.parametrize("kind", PROGRAMS)
async def test_a_program_that_is_no_server(inspect, kind):
    code, shown = PROGRAMS[kind]
    inspector = await inspect("--timeout", "2", "--", sys.executable, "-c", code)
    await inspector.text("#status", "Connection failed")
    await inspector.text("[aria-label=Server] .problem", shown)
    await inspector.do("set", "Program and arguments", f"{sys.executable}\n{SERVER}")
    await inspector.fill(Timeout="60")
    await inspector.click("Connect")
    await inspector.text("#status", "Connected to shelf")


def test_an_unknown_target_ends_the_command(tmp_path):
    done = subprocess.run([PROGRAM, "inspect", "nowhere"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert "nowhere" in done.stderr and "hint:" in done.stderr


def test_a_closed_pipe_is_no_panic():
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run([PROGRAM, "inspect", "--no-open"], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")
