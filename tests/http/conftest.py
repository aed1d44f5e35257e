"""Runs each test against every server and mount, or, with `only`, against some of them."""

import pytest
import servers
from certificates import make_certificate


def pytest_addoption(parser):
    parser.addoption("--servers", default="", help=f"only these, separated by commas: {', '.join(servers.KINDS)}")


def pytest_generate_tests(metafunc):
    chosen = metafunc.config.getoption("--servers").split(",")
    kinds = [kind for kind in servers.KINDS if kind in chosen or chosen == [""]]
    if "kind" in metafunc.fixturenames:
        if only := metafunc.definition.get_closest_marker("only"):
            kinds = [kind for kind in kinds if kind in only.args]
        metafunc.parametrize("kind", kinds, scope="session", ids=str)


def pytest_collection_modifyitems(config, items):
    """Deselects tests for other kinds of server; tests without a kind run with the first one."""
    chosen = config.getoption("--servers")
    needs_none = not chosen or next(iter(servers.KINDS)) in chosen.split(",")
    items[:] = [item for item in items if is_of_a_kind(item) or (needs_none and "kind" not in item.fixturenames)]


def is_of_a_kind(item):
    return "kind" in item.fixturenames and item.callspec.params.get("kind") in servers.KINDS


def pytest_configure(config):
    config.addinivalue_line(
        "markers", "only(*kinds): about what only these servers do, or all servers with the same code"
    )


def surviving(server):
    """Yields a server that must survive the test."""
    assert server.is_alive(), f"{server.kind} was dead before this test\n{server.said()}"
    yield server
    assert server.is_alive(), f"{server.kind} died of this test\n{server.said()}"


@pytest.fixture(scope="session")
def _running(kind):
    # With a short keep-alive interval, streams carry comments within a test's time limit.
    with servers.Server(kind, keep_alive=0.2, legacy_sse=True) as server:
        yield server


@pytest.fixture
def server(_running):
    """The server that most tests share."""
    yield from surviving(_running)


@pytest.fixture(scope="session")
def _brisk(kind):
    with servers.Server(kind, header_timeout=1.0, idle_timeout=1.5, body_timeout=1.5, keep_alive=0.2) as server:
        yield server


@pytest.fixture
def brisk(_brisk):
    """A server with short time limits."""
    yield from surviving(_brisk)


@pytest.fixture
def start(kind):
    """Starts further servers of this kind with other options; they are stopped after the test."""
    started = []

    def start(**options):
        started.append(servers.Server(kind, **options))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """The paths of a certificate for this machine, and of its key."""
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.fixture(params=["modern", "legacy"])
def era(request):
    return request.param
