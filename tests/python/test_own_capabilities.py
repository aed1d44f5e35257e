"""Extensions and experimental capabilities of a program's own, which the other side reads.

Spec: Capabilities; SEP-2133, "Negotiation".
"""

from typing import Any

import pytest

from gudgeon import Server, SyncContext
from gudgeon.testing import ERAS, connect_sync

SEARCH = "com.example/search"


@pytest.mark.parametrize("era", ERAS)
def test_each_side_reads_the_others(era: str) -> None:
    app = Server("shelf", extensions={SEARCH: {"depth": 2}}, experimental={"ranks": {}})

    @app.method("com.example/search/find")
    def find(ctx: SyncContext) -> dict[str, Any]:
        assert ctx.client_capabilities == ctx.client.capabilities
        return {"found": ctx.client_capabilities}

    options: Any = {"extensions": {SEARCH: {"width": 3}}, "experimental": {"drafts": {}}}
    with connect_sync(app, revision=era, **options) as client:
        assert client.server.capabilities == client.capabilities
        assert client.server.capabilities["extensions"] == {SEARCH: {"depth": 2}}
        assert client.capabilities["experimental"] == {"ranks": {}}
        assert client.server.name == "shelf"
        found = client.request("com.example/search/find", {})["found"]
        assert {name: found[name] for name in options} == options


def test_a_server_declares_those_of_its_mounted_servers() -> None:
    town = Server("town", extensions={"com.example/maps": {}})
    house = Server("house")
    town.mount(house, prefix="house")
    house.mount(Server("shelf", extensions={SEARCH: {}}), prefix="shelf")
    with connect_sync(town) as client:
        assert client.capabilities["extensions"] == {"com.example/maps": {}, SEARCH: {}}
    with pytest.raises(ValueError, match=f'"other" can\'t be mounted into "town": both declare "{SEARCH}"'):
        town.mount(Server("other", extensions={SEARCH: {"depth": 1}}), prefix="other")


@pytest.mark.parametrize(
    ("options", "error", "reason"),
    [
        ({"extensions": ["search"]}, TypeError, "must be a mapping"),
        ({"extensions": {"search": {}}}, ValueError, 'extensions: "search" is not the name of an extension'),
        ({"extensions": {SEARCH: True}}, ValueError, f'extensions: the settings of "{SEARCH}" must be an object'),
        ({"experimental": {"ranks": None}}, ValueError, 'experimental: the settings of "ranks" must be an object'),
    ],
)
def test_wrong_names_and_settings_are_refused(options: Any, error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        Server("shelf", **options)
    with pytest.raises(error, match=reason), connect_sync(Server("shelf"), **options):
        pass
