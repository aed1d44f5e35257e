"""Lists and resources that a client does not request again while they are fresh (Utilities › Caching)."""

import pytest

from gudgeon import Client, ClientGroup, Server, SyncClient

ABOUT = "shelf://about"


def shelf() -> tuple[Server, list[str]]:
    """Returns a server whose results are fresh for a minute, and the reads that it answered."""
    app = Server("shelf", list_ttl=60)
    reads: list[str] = []

    @app.resource(ABOUT, ttl=60)
    def about() -> str:
        reads.append(ABOUT)
        return f"read {len(reads)}"

    app.tool(lambda: "ok", name="tidy")
    return app, reads


@pytest.mark.parametrize(
    ("options", "expected"),
    [({}, 1), ({"cache_results": True}, 1), ({"cache_results": False}, 3), ({"revision": "2025-11-25"}, 3)],
)
def test_a_fresh_resource_is_not_read_again(options, expected):
    app, reads = shelf()
    with SyncClient(app, **options) as client:
        assert [client.read_resource(ABOUT).text for _ in range(3)][-1] == f"read {expected}"
    assert len(reads) == expected


async def test_a_change_makes_a_client_ask_again():
    app, reads = shelf()
    async with Client(app) as client, client.subscribe(ABOUT, tools=True) as changes:
        assert [len(await client.list_tools()), (await client.read_resource(ABOUT)).text] == [1, "read 1"]
        app.tool(lambda: "ok", name="sort")
        app.notify_updated(ABOUT)
        assert {(await anext(changes)).kind, (await anext(changes)).kind} == {"tools", "updated"}
        assert [len(await client.list_tools()), (await client.read_resource(ABOUT)).text] == [2, "read 2"]
    assert len(reads) == 2


async def test_clients_share_nothing():
    app, reads = shelf()
    async with Client(app) as one, Client(app) as other, ClientGroup({"shelf": app}) as group:
        for client in (one, other, group, group):
            await client.read_resource(ABOUT)
    assert len(reads) == 3


def test_the_option_is_a_boolean():
    with pytest.raises(TypeError, match="cache_results= must be"):
        SyncClient(Server("shelf"), cache_results=60)  # type: ignore[arg-type]
