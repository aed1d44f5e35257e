"""A library's loan desk, served by several processes: any of them can continue a call after the answer."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass

from gudgeon import Context, Server, SyncContext, ask
from gudgeon.ask import Question

# The first key encrypts, all of them decrypt. To rotate: put the new key first, and drop the old one after `state_ttl`.
app = Server("loan-desk", request_state_keys=os.environ["LIBRARY_KEYS"].split(","), state_ttl=600)
DESK = os.environ["LIBRARY_DESK"]


@dataclass
class Reader:
    name: str
    card: int


def register_loan(book: str) -> str:
    return f"loan of {book} at the {DESK} desk"


@app.tool
async def borrow(book: str, ctx: Context) -> str:
    """Borrow a book: who borrows it, and for how long."""
    loan = await ctx.step("loan", register_loan, book)  # done by the desk that gets the first request, and only there
    reader = await ctx.elicit("Who are you?", Reader, key="reader")
    weeks = await ctx.elicit("For how many weeks?", int, key="weeks")
    return f"{loan}: {reader.name}, {weeks} weeks, stamped at the {DESK} desk"


@app.tool
def give_back(book: str, ctx: SyncContext) -> str | Question[bool]:
    """Give a book back."""
    damaged = ask.elicit("Is it damaged?", bool, key="damaged")
    answer = ctx.answer(damaged)
    return damaged if answer is None else f"{book}: {'repair' if answer else 'shelf'}, says the {DESK} desk"


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
