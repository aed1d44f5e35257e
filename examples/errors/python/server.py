"""A bank's counter: all the ways in which a call can fail, and the errors that the client gets."""

from __future__ import annotations

import asyncio
import sys

from gudgeon import Context, ProtocolError, ResourceNotFound, Server, ToolError


class Overdrawn(Exception):
    """An error whose message the client may read."""


app = Server("bank", expose_errors=(Overdrawn,))
accounts = {"ada": 100, "bob": 20}


@app.tool
def withdraw(name: str, euros: int) -> int:
    """Take money out."""
    if name not in accounts:
        raise ToolError(f"Nobody here is called {name}.", **{"bank.example/known": len(accounts)})
    if euros > accounts[name]:
        raise Overdrawn(f"{name} has {accounts[name]} euros")
    return accounts[name] - euros


@app.tool
def audit() -> float:
    """A mistake of ours: the customer gets a reference, the log has the traceback under it."""
    return sum(accounts.values()) / 0


@app.tool
def transfer(euros: int) -> str:
    """The counter is closed: an error of the protocol, for the program and not for the model."""
    raise ProtocolError(4001, "The counter is closed.", {"opens": "09:00"})


@app.tool
async def close_account(name: str, ctx: Context) -> str:
    """Close an account, if the customer agrees; Declined is not caught here."""
    sure = await ctx.elicit(f"Close {name}'s account?", bool, key="sure")
    reason = await ctx.elicit("Why do you leave?", str, key="reason")
    return f"closed, because: {reason}" if sure else "kept"


@app.tool(timeout=0.2)
async def loan() -> str:
    """Decisions take longer than a call may."""
    await asyncio.sleep(3600)
    return "granted"


at_the_expert: list[str] = []


@app.tool
async def appraise(thing: str) -> str:
    """Say what something is worth, once the expert comes. Who gives up before ends this handler, and it cleans up."""
    at_the_expert.append(thing)
    try:
        await asyncio.sleep(86_400)
    finally:
        at_the_expert.remove(thing)
    return "priceless"


@app.resource("bank://expert")
def waiting() -> list[str]:
    return at_the_expert


@app.resource("bank://accounts/{name}")
def statement(name: str) -> str:
    if name not in accounts:
        raise ResourceNotFound(f"bank://accounts/{name}")
    return f"{accounts[name]} euros"


@app.prompt
def reminder(name: str) -> str:
    """Write a reminder."""
    raise LookupError("the template is missing")


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
