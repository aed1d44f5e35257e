"""A weather station: structured results, images, audio and files, pages of lists, caching."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from gudgeon import Audio, File, Image, ResourceLink, Server, SyncContext, ToolError, ToolResult
from gudgeon.errors import NotSupported

FORECAST = Path(__file__).parents[1] / "forecast.txt"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b55"
    "0000000a49444154789c636000000002000148afa4710000000049454e44ae426082"
)
CELSIUS = {"coast": 14.5, "hill": 9.0, "town": 17.0}

app = Server("weather-station", page_size=3)


@dataclass
class Reading:
    station: str
    celsius: Annotated[float, Meta(ge=-90, le=60)]


@app.tool
def measure(station: str) -> Reading:
    """Measure at one station. The annotation makes the output schema; the client gets the numbers and a text."""
    if station not in CELSIUS:
        raise ToolError(f"There is no station {station!r}: take {', '.join(CELSIUS)}.")
    return Reading(station, CELSIUS[station])


@app.tool
def measure_all() -> list[Reading]:
    """Measure everywhere. Where a revision wants an object, the list is wrapped; a client unwraps it."""
    return [Reading(station, celsius) for station, celsius in CELSIUS.items()]


@app.tool
def sunspot() -> Reading:
    """A broken thermometer: what it gives is not what was promised."""
    return Reading("sun", 5500)


@app.tool
def chart() -> list[str | Image]:
    """A picture of the day, with a caption."""
    return ["Today:", Image(PIXEL, format="png")]


@app.tool
def siren() -> Audio:
    """The sound of the storm warning."""
    return Audio(b"RIFF\x24\x00\x00\x00WAVE", format="wav")


@app.tool
def bulletin() -> list[File | ResourceLink]:
    """The forecast as a file, and where the stations' own pages are."""
    return [File(FORECAST), ResourceLink("weather://stations/hill", name="hill", mime_type="text/plain")]


@app.tool
def almanac() -> ToolResult:
    """Everything said by hand: what people read, what programs read, and what hosts keep to themselves."""
    return ToolResult(["A mild year."], structured_content={"mean": 13.5}, meta={"weather.example/volume": 12})


visits: list[str] = []


@app.resource("weather://stations/{name}", mime_type="text/plain", ttl=60, cache_scope="public", cache=60)
def station_page(name: str) -> str:
    """Clients may cache this for a minute, and the server does: the handler runs once a minute for each station."""
    visits.append(name)
    return f"{name}: {CELSIUS[name]:g} degrees, visit {len(visits)}"


watching: list[str] = []


@app.resource("weather://storms/{name}")
async def next_storm(name: str) -> str:
    """A resource that is slow to read. If the client cancels, the handler ends and cleans up."""
    watching.append(name)
    try:
        await asyncio.sleep(86_400)
    finally:
        watching.remove(name)
    return f"Hold your hat at {name}!"


@app.resource("weather://storms")
def who_waits() -> list[str]:
    return watching


@app.tool
def watch(station: str, ctx: SyncContext) -> str:
    """Remember a station for as long as the session lasts, where there are sessions."""
    try:
        before = ctx.session.get("station", "nothing")
        ctx.session["station"] = station
    except NotSupported as error:
        raise ToolError(f"Name the station each time: {error.hint}") from None
    return f"{before} -> {station}"


if __name__ == "__main__":
    app.run(*sys.argv[1:2])
