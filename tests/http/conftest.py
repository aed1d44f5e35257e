"""Runs each test against every server, or, with `native` or `only`, against some of them."""

import pytest
import servers


def pytest_addoption(parser):
    parser.addoption("--servers", default="", help=f"only these, separated by commas: {', '.join(servers.KINDS)}")


def pytest_generate_tests(metafunc):
    chosen = metafunc.config.getoption("--servers").split(",")
    kinds = [kind for kind in servers.KINDS if kind in chosen or chosen == [""]]
    if "kind" in metafunc.fixturenames:
        if metafunc.definition.get_closest_marker("native"):
            kinds = [kind for kind in kinds if kind in servers.NATIVE]
        if only := metafunc.definition.get_closest_marker("only"):
            kinds = [kind for kind in kinds if kind in only.args]
        metafunc.parametrize("kind", kinds, scope="session", ids=str)


def pytest_collection_modifyitems(config, items):
    """Deselects tests for other kinds of server; tests without a kind run with the first one."""
    chosen = config.getoption("--servers")
    needs_none = not chosen or next(iter(servers.KINDS)) in chosen.split(",")
    items[:] = [it for it in items if is_of_a_kind(it) or (needs_none and "kind" not in it.fixturenames)]


def is_of_a_kind(item):
    return "kind" in item.fixturenames and item.callspec.params.get("kind") in servers.KINDS


def pytest_configure(config):
    config.addinivalue_line("markers", "native: about connections, so only for servers that hold them themselves")
    config.addinivalue_line("markers", "only(*kinds): about what only these servers can know")


@pytest.fixture(scope="session")
def _running(kind):
    # A short keep-alive interval makes idle streams send comments within a test's time limit.
    with servers.Server(kind, keep_alive=0.3, legacy_sse=True) as server:
        yield server


@pytest.fixture
def server(_running):
    """The server that most tests share; it must survive each of them."""
    assert _running.is_alive(), f"{_running.kind} was dead before this test\n{_running.said()}"
    yield _running
    assert _running.is_alive(), f"{_running.kind} died of this test\n{_running.said()}"


@pytest.fixture(scope="session")
def _brisk(kind):
    with servers.Server(kind, header_timeout=1.0, idle_timeout=1.5, keep_alive=0.3) as server:
        yield server


@pytest.fixture
def brisk(_brisk):
    """A server with short time limits."""
    assert _brisk.is_alive(), f"{_brisk.kind} was dead before this test\n{_brisk.said()}"
    yield _brisk
    assert _brisk.is_alive(), f"{_brisk.kind} died of this test\n{_brisk.said()}"


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


@pytest.fixture(params=["modern", "legacy"])
def era(request):
    return request.param
