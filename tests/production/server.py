"""A server for the tests behind proxies: `server.py URL OPTIONS`, with the options of `app.run` as JSON.

What must outlive its process, and what tests wait for, are files in the folder of the variable FOLDER.
"""

import asyncio
import json
import os
import sys
from pathlib import Path

from gudgeon import Context, Server
from gudgeon.auth import Principal, RequestInfo

FOLDER = Path(os.environ["FOLDER"])
REPLICA = os.environ["REPLICA"]
options = json.loads(sys.argv[2])


def append(name: str, line: str) -> None:
    with (FOLDER / name).open("a", encoding="utf-8") as file:
        file.write(f"{line}\n")


def verify(token: str, request: RequestInfo) -> Principal:
    append("clients", f"{request.client}")
    return Principal(subject=token)


# No token of the issuer comes; with it, the server has metadata.
of_server = {"auth": ["https://login.example.com", verify]} if options.pop("with_auth", False) else {}
if "store" in options:
    of_server["store"] = options.pop("store")
app = Server("shelf", **of_server)


@app.tool
def replica() -> str:
    return REPLICA


@app.tool
def echo(text: str) -> str:
    return text


@app.tool
async def order(number: int, ctx: Context) -> str:
    """Does something that must not happen twice, and asks a question."""
    await ctx.step("reserve", append, "ledger", str(number))
    # The question that clients of the interoperability tests answer.
    more = await ctx.elicit("Another book (1)?", bool)
    return f"{number}: {'more' if more else 'enough'}"


@app.tool
async def held(name: str, ctx: Context) -> str:
    """Reports progress, and waits until the test has created a file."""
    append(f"{name}.started", REPLICA)
    ctx.progress(1, 2)
    while not (FOLDER / name).exists():
        await asyncio.sleep(0.01)
    ctx.progress(2, 2)
    return name


@app.tool
async def counted(ctx: Context, steps: int) -> int:
    for step in range(steps):
        ctx.progress(step + 1, steps)
        await asyncio.sleep(0)
    return steps


@app.resource("shelf://top")
def top() -> str:
    return "full"


@app.tool
def change() -> str:
    app.notify_updated("shelf://top")
    return REPLICA


app.run(sys.argv[1], **options)
