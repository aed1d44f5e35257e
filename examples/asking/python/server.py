"""A travel desk that asks its customer: forms, a URL to open, the customer's model and folders."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Literal

from msgspec import Meta

from gudgeon import Cancelled, Context, Declined, Server, SyncContext, ToolError, ask
from gudgeon.ask import Question

app = Server("travel-desk")


@dataclass
class Trip:
    city: str
    leave: date
    nights: Annotated[int, Meta(ge=1, le=30)]
    seat: Literal["window", "aisle"]
    extras: list[Literal["breakfast", "parking"]]
    insured: bool = False


@app.tool
async def book_trip(ctx: Context) -> str:
    """Book a trip: asks where to, says the price, and asks again."""
    trip = await ctx.elicit("Where do you want to go?", Trip)  # Declined, which is not caught here, ends the call
    price = 80 * trip.nights + 15 * len(trip.extras) + 30 * trip.insured
    outcome = await ctx.try_elicit(f"{trip.city} for {price} euros?", bool)
    if isinstance(outcome, Declined):
        return "Another trip, then?"
    if isinstance(outcome, Cancelled):
        return "The offer stands until tonight."
    return f"{trip.city} from {trip.leave}, {trip.seat} seat" if outcome.value else "Nothing is booked."


@app.tool
async def check_in(ctx: Context) -> str:
    """Check in: name, bags and meal are asked at once."""
    name, bags, meal = await ctx.ask(
        ask.elicit("Name as in the passport?", str),
        ask.elicit("How many bags?", int),
        ask.elicit("Which meal?", Literal["fish", "beans"], key="meal"),
    )
    return f"{name}, {bags} bags, {meal}"


@app.tool
async def pay(euros: int, ctx: Context) -> str:
    """Pay on the bank's page, so that no card number passes through the model."""
    page = await ctx.elicit_url("Please pay at your bank.", f"https://bank.example/pay?euros={euros}")
    app.notify_url_done(page)  # after the bank's callback; 2026-07-28 has no such notification
    return f"{euros} euros are paid."


@app.tool
def postcard(city: str, ctx: SyncContext) -> str:
    """Write a postcard, in the words of the customer's own model."""
    answer = ctx.sample(f"A postcard from {city}.", system="You are cheerful.", max_tokens=60)
    return f"{answer.text} ({answer.model})"


@app.tool
async def save_ticket(ctx: Context) -> str:
    """Say where the ticket goes: the first folder that the customer opened to us."""
    folders = await ctx.roots()
    if not folders:
        raise ToolError("You opened no folder to me.")
    return f"{folders[0].uri}/ticket.pdf"


fees: list[int] = []
held: list[str] = []


def take_fee(euros: int) -> str:
    fees.append(euros)
    return f"receipt {len(fees)}"


@app.tool
async def change_booking(ctx: Context) -> str:
    """Change a booking. The handler may run again from its top; the step makes sure that the fee is taken once."""
    receipt = await ctx.step("fee", take_fee, 20)
    day = await ctx.elicit("Which day instead?", date)
    return f"{day}, {receipt}, {len(fees)} in all"


@app.tool(replay="forbid")
async def last_seat(ctx: Context) -> str:
    """Sell the last seat. It is held while the customer thinks, so this handler must never run twice for one call."""
    held.append("27A")
    try:
        return f"{held[0]} is yours" if await ctx.elicit("The last seat. Take it?", bool) else "gone"
    finally:
        held.pop()


@app.tool
def cancel_trip(booking: int, ctx: SyncContext) -> str | Question[bool]:
    """Cancel a booking, in the explicit form: return the question, be called again with its answer."""
    sure = ask.elicit(f"Cancel booking {booking}?", bool)
    answer = ctx.answer(sure)
    if answer is None:
        return sure
    return "cancelled" if answer else "kept"


if __name__ == "__main__":
    app.run(*sys.argv[1:2])  # stdio, or the URL it is given
