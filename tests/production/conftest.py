"""A server or several behind each proxy that the documentation configures."""

from collections.abc import Iterator

import pytest
from certificates import make_certificate
from documented_sites import CONFIGURATIONS, Site, started


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sticky: needs a proxy that gives all requests of a session to one server")
    config.addinivalue_line("markers", "several: needs several servers")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Runs each test with each configuration, or with those that its marks name."""
    chosen = CONFIGURATIONS
    if metafunc.definition.get_closest_marker("sticky"):
        chosen = [found for found in chosen if found.is_sticky]
    if metafunc.definition.get_closest_marker("several"):
        chosen = [found for found in chosen if found.replicas > 1]
    for name in {"site", "protected_site"} & set(metafunc.fixturenames):
        metafunc.parametrize(name, chosen, indirect=True, scope="module", ids=str)


@pytest.fixture(scope="module")
def site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificate: list[str]
) -> Iterator[Site]:
    yield from started(request.param, tmp_path_factory.mktemp("site"), certificate)


@pytest.fixture(scope="module")
def protected_site(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, certificate: list[str]
) -> Iterator[Site]:
    """A site for callers with tokens, which notes their addresses."""
    folder = tmp_path_factory.mktemp("site")
    yield from started(request.param, folder, certificate, with_auth=True, public_url="https://shelf.example.com/mcp")
