"""Options of commands that name a connection: those of the connection belong to `gudgeon connect`."""

import pytest
from background import ERAS, connect

OPTIONS = [
    ["--header", "X-Key: 1"],
    ["-H", "X-Key: 1"],
    ["--revision", "2025-06-18"],
    ["--token-file", "token"],
    ["--ca", "token"],
]


@pytest.mark.parametrize("words", OPTIONS, ids=" ".join)
def test_an_option_of_the_connection_is_an_error_before_anything_is_sent(gudgeon, run, shop, words):
    connect(gudgeon, shop)
    (gudgeon.folder / "token").write_text("t")
    option = "--header" if words[0] == "-H" else words[0]
    commands = [
        ["call", "shop", "count"],
        ["call", "--detach", "shop", "count"],
        ["list", "shop"],
        ["read", "shop", "shop://x"],
        ["ping", "shop"],
        ["listen", "shop"],
        ["types", "--python", "shop"],
        ["inspect", "--no-open", "shop"],
    ]
    for command in commands:
        refused = gudgeon(*command, *words)
        assert refused.code == 2 and f'{option} can\'t change the connection "shop"' in refused.err, refused
        assert f"gudgeon connect shop {option}" in refused.err
    assert gudgeon("call", "shop", "count").out == "1\n"


def test_folders_belong_to_the_connection(gudgeon, run, desk):
    (gudgeon.folder / "books").mkdir()
    connect(gudgeon, desk, "--root", "books", name="desk")
    assert gudgeon("call", "desk", "where").json == [f"file://{gudgeon.folder}/books"]
    for command in (["call", "desk", "where"], ["call", "--detach", "desk", "where"], ["list", "desk"]):
        refused = gudgeon(*command, "--root", "books")
        assert refused.code == 2 and "gudgeon connect desk --root" in refused.err, refused


def test_a_detached_call_has_folders(gudgeon, run, desk):
    outcome = gudgeon("call", "--detach", desk, "where", "--root", "file:///srv")
    assert outcome.json == ["file:///srv"], outcome


@pytest.mark.parametrize("era", ERAS, ids=["modern", "legacy"])
def test_time_limits_are_those_of_the_command(gudgeon, run, shelf, era):
    connect(gudgeon, shelf, *era, name="shelf")
    late = gudgeon("call", "shelf", "wait", "seconds:=600", "--max-timeout", "0.5")
    assert late.code == 4, late
    assert gudgeon("call", "shelf", "add", "a=1", "b=2", "--timeout", "30", "--connect-timeout", "30").out == "3\n"
