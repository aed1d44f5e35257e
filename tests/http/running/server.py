"""A server as users write it: `app.run(url)`. Usage: server.py URL"""

import asyncio
import sys
import time

from gudgeon import Server

app = Server("running")


@app.tool
async def slow(ms: int) -> str:
    print("started", file=sys.stderr, flush=True)
    await asyncio.sleep(ms / 1000)
    return f"Took {ms} ms"


@app.tool
def slow_thread(ms: int) -> str:
    print("started", file=sys.stderr, flush=True)
    time.sleep(ms / 1000)
    return f"Took {ms} ms"


print(sys.argv[1], file=sys.stderr, flush=True)
app.run(sys.argv[1])
