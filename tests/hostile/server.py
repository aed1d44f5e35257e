"""The server that hostile clients attack. Arguments: "stdio" or a URL, and optionally HTTP options as JSON."""

import asyncio
import json
import logging
import sys
from typing import Annotated

from msgspec import Meta

from gudgeon import Server

app = Server("target")


@app.tool
def length(text: str) -> int:
    return len(text)


@app.tool
def password(text: Annotated[str, Meta(pattern=r"(?=.*[a-z])(?=.*[0-9]).{8}")]) -> str:
    return "taken"


@app.tool
def big(size: int) -> str:
    return "x" * size


@app.tool
async def slow(ms: int) -> str:
    await asyncio.sleep(ms / 1000)
    return "done"


logging.basicConfig()
if sys.argv[1] == "stdio":
    app.run()
else:
    app.run(sys.argv[1], **json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}"))
