"""The official clients are installed before the tests, and the client programs end after them."""

import pytest
from peers import set_up
from replicas import PROGRAMS


@pytest.fixture(scope="session", autouse=True)
def programs():
    set_up()
    yield
    assert {name: wrong for name, program in PROGRAMS.items() if (wrong := program.close())} == {}
