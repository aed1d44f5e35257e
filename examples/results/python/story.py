"""A client that reads all kinds of results."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from gudgeon import Audio, Client, EmbeddedResource, Image, ProtocolError, ResourceLink, Target, Text, ToolError


@dataclass
class Reading:
    station: str
    celsius: float


async def story(target: Target, revision: Any) -> None:
    async with Client(target, revision=revision) as client:
        # Structured output: as JSON, or converted to a type of the caller.
        plain = await client.call_tool("measure", {"station": "hill"})
        assert plain.data == plain.structured_content == {"station": "hill", "celsius": 9}
        typed = await client.call_tool("measure", {"station": "hill"}, returns=Reading)
        assert typed.data == Reading("hill", 9.0)
        everywhere = await client.call_tool("measure_all", returns=list[Reading])
        assert [reading.station for reading in everywhere.data] == ["coast", "hill", "town"]

        try:
            await client.call_tool("measure", {"station": "moon"})
            raise AssertionError("there is no station on the moon")
        except ToolError as error:
            assert error.text == "There is no station 'moon': take coast, hill, town."
        broken = await client.call_tool("sunspot", raise_on_error=False)
        assert broken.is_error and "5500" not in broken.text, "what was wrong is the server's to know, by reference"

        # Other kinds of content.
        caption, picture = (await client.call_tool("chart")).content
        assert isinstance(caption, Text) and caption.text == "Today:"
        assert isinstance(picture, Image) and picture.mime_type == "image/png" and picture.data[1:4] == b"PNG"
        (sound,) = (await client.call_tool("siren")).content
        assert isinstance(sound, Audio) and sound.mime_type == "audio/wav" and sound.data.startswith(b"RIFF")
        file, link = (await client.call_tool("bulletin")).content
        assert isinstance(file, EmbeddedResource) and file.uri.endswith("forecast.txt")
        assert file.text == "Rain in the morning, sun after lunch.\n" and file.mime_type == "text/plain"
        assert isinstance(link, ResourceLink)
        almanac = await client.call_tool("almanac")
        assert almanac.text == "A mild year." and almanac.data == {"mean": 13.5}
        assert almanac.meta["weather.example/volume"] == 12

        # A link to a resource. The server caches it, so the second read does not call the handler.
        first = (await client.read_resource(link.uri)).text
        assert first == "hill: 9 degrees, visit 1"
        assert (await client.read_resource("weather://stations/{name}", {"name": "hill"})).text == first
        assert (await client.read_resource("weather://stations/town")).text.endswith("visit 2")
        # Cache hints are sent in the revisions that have them.
        said = await client.request("resources/read", {"uri": link.uri})
        modern = revision == "2026-07-28"
        assert (said.get("ttlMs"), said.get("cacheScope")) == ((60_000, "public") if modern else (None, None))

        # A cancelled read ends its handler, which cleans up.
        async def waiting_for_storms() -> str:
            return (await client.read_resource("weather://storms")).text

        storm = asyncio.create_task(client.read_resource("weather://storms/hill"))
        while await waiting_for_storms() != '["hill"]':
            await asyncio.sleep(0.01)
        storm.cancel()
        while await waiting_for_storms() != "[]":
            await asyncio.sleep(0.01)

        # Lists have pages of three; `list_tools` fetches them all, `list_tools_page` one.
        tools = [tool.name for tool in await client.list_tools()]
        pages = [await client.list_tools_page()]
        while pages[-1].next_cursor is not None:
            pages.append(await client.list_tools_page(pages[-1].next_cursor))
        assert [len(page.items) for page in pages] == [3, 3, 2]
        assert [tool.name for page in pages for tool in page.items] == tools
        try:
            await client.list_tools_page("page two, please")
            raise AssertionError("only the server makes cursors")
        except ProtocolError as error:
            assert error.code == -32602

        # Session values; in the revision without sessions the error says what to use instead.
        if modern:
            refused = await client.call_tool("watch", {"station": "hill"}, raise_on_error=False)
            assert refused.is_error and "Name the station each time: give the client a handle" in refused.text
        else:
            assert (await client.call_tool("watch", {"station": "hill"})).text == "nothing -> hill"
            assert (await client.call_tool("watch", {"station": "town"})).text == "hill -> town"
