"""A server whose tools do not stop by themselves.

Arguments: "stdio" or a URL, the time for handlers at the end in milliseconds, the number of workers (default 1).
"""

import asyncio
import logging
import os
import subprocess
import sys
import time

from gudgeon import Server

app = Server("death")


def began(at: str) -> None:
    open(at, "w").close()


@app.tool
async def blocked(at: str) -> None:
    """Blocks the event loop."""
    began(at)
    time.sleep(600)


@app.tool
async def spin(at: str) -> None:
    os.nice(5)
    began(at)
    while True:
        pass


@app.tool
async def swallows(at: str) -> None:
    """Ignores its cancellation."""
    began(at)
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            pass


@app.tool
def grandchild(at: str) -> None:
    """Waits for a process that holds this one's standard streams."""
    with subprocess.Popen(["sleep", "600"]) as process:
        with open(at + ".part", "w") as file:
            file.write(str(process.pid))
        os.rename(at + ".part", at)
        process.wait()


@app.tool
async def fail(size: int) -> None:
    raise RuntimeError("x" * size)


logging.basicConfig()
at, grace = sys.argv[1], int(sys.argv[2]) / 1000
workers = int(sys.argv[3]) if len(sys.argv) > 3 else 1
if at == "stdio":
    app.run(shutdown_grace=grace)
else:
    app.run(at, shutdown_grace=grace, workers=workers)
