"""Tells how many operations a second each store carries out, with 1 and with 32 in flight.

.venv/bin/python tests/bench/store.py
"""

import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = [
    "cargo",
    "build",
    "--release",
    "--quiet",
    "--package",
    "bench-driver",
    "--features",
    "stores",
    "--bin",
    "bench-store",
]
START_TIME = 30


def main() -> None:
    subprocess.run(BUILD, cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "redis")
        program = shutil.which("redis-server")
        if program is None:
            print("redis-server is not installed, so Redis is left out")
            measure(folder)
            return
        options = ["--port", "0", "--save", "", "--unixsocket", str(socket), "--dir", folder]
        with subprocess.Popen([program, *options], stdout=subprocess.DEVNULL) as redis:
            try:
                end = time.monotonic() + START_TIME
                while not socket.exists() and time.monotonic() < end:
                    time.sleep(0.05)
                measure(folder, f"redis+unix://{socket}")
            finally:
                redis.terminate()


def measure(*arguments: str) -> None:
    subprocess.run([ROOT / "target/release/bench-store", *arguments], check=True)


if __name__ == "__main__":
    main()
