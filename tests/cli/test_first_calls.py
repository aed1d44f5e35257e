"""A call, a list and a ping of a server that is given as file and as command."""

import sys

import pytest


def targets(shelf):
    return [[shelf], ["--", sys.executable, shelf]]


@pytest.mark.parametrize("form", [0, 1], ids=["file", "command"])
def test_a_call_prints_the_result(gudgeon, shelf, form):
    target = targets(shelf)[form]
    words = ["add", "a:=1", "b:=2"]
    words = [*words, *target] if form else [*target, *words]
    outcome = gudgeon("call", *words)
    assert outcome == (0, "3\n", "")


def test_an_unknown_target_is_an_error_of_usage(gudgeon):
    outcome = gudgeon("ping", "nowhere")
    assert outcome.code == 2
    assert "nowhere" in outcome.err and outcome.out == ""


def test_a_ping_names_revision_and_time(gudgeon, shelf):
    outcome = gudgeon("ping", shelf)
    assert outcome.code == 0
    assert "2026-07-28" in outcome.out and " ms" in outcome.out


def test_an_error_of_a_tool_has_its_exit_code(gudgeon, shelf):
    outcome = gudgeon("call", shelf, "fail")
    assert outcome.code == 1
    assert "the shelf is locked" in outcome.err
