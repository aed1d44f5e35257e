"""Progress, log messages and content of calls over named connections: as without the background process."""

import json

import pytest
from background import ERAS, connect
from terminal import Terminal

IDS = ["modern", "legacy"]


@pytest.mark.parametrize("words", [[], ["--answer", "x=1"]], ids=["kept", "direct"])
@pytest.mark.parametrize("era", ERAS, ids=IDS)
def test_log_messages_go_to_standard_error(gudgeon, run, desk, era, words):
    connect(gudgeon, desk, *era, name="desk")
    words = ["call", "desk", "log", *words]
    normal = gudgeon(*words)
    assert normal.out == "logged\n"
    assert normal.err.startswith("[info] opened a drawer\n[warning] it is ")
    assert gudgeon(*words, "--log-level", "debug").err.startswith("[debug] found the desk\n[info]")
    assert gudgeon(*words, "--log-level", "warning").err.startswith("[warning]")
    assert gudgeon(*words, "--log-level", "emergency").err == ""
    # The level of a command is not that of the next.
    assert gudgeon(*words).err == normal.err
    assert gudgeon(*words, "--quiet") == (0, "logged\n", "")
    printed = gudgeon(*words, "--json")
    assert printed.json["content"][0]["text"] == "logged" and printed.err == normal.err


def test_a_detached_call_reports_log_messages(gudgeon, run, desk):
    outcome = gudgeon("call", "--detach", desk, "log", "--log-level", "debug")
    assert outcome.out == "logged\n" and outcome.err.startswith("[debug] found the desk\n"), outcome


@pytest.mark.parametrize("words", [["call"], ["call", "--detach"]], ids=" ".join)
@pytest.mark.parametrize("era", ERAS, ids=IDS)
def test_progress_is_shown_on_a_terminal_only(gudgeon, run, shelf, era, words):
    connect(gudgeon, shelf, *era, name="shelf")
    terminal = Terminal(gudgeon, *words, "shelf", "wait", "seconds=0.5")
    assert "%" in terminal.read_until("step ")
    code, shown = terminal.finish()
    assert code == 0 and "done" in shown
    code, shown = Terminal(gudgeon, *words, "shelf", "wait", "seconds=0.1", "--quiet").finish()
    assert (code, shown) == (0, "done\n")
    assert gudgeon(*words, "shelf", "wait", "seconds=0.1") == (0, "done\n", "")


@pytest.mark.parametrize("era", ERAS, ids=IDS)
def test_an_answer_reports_what_happens_after_it(gudgeon, run, shop, era):
    connect(gudgeon, shop, *era)
    asked = gudgeon("call", "shop", "pack", "--json")
    assert asked.code == 20 and asked.err == "[info] found a box\n"
    answered = gudgeon("answer", asked.json["question"]["id"], "value=yes")
    assert answered == (0, "wrapped\n", "[warning] the box is small\n")
    asked = gudgeon("call", "shop", "pack", "--json", "--quiet")
    assert asked.err == ""
    assert gudgeon("answer", asked.json["question"]["id"], "value=no") == (0, "bare\n", "")
    asked = gudgeon("call", "shop", "pack", "--json")
    assert gudgeon("answer", asked.json["question"]["id"], "value=no", "--quiet") == (0, "bare\n", "")
    asked = gudgeon("call", "shop", "pack", "--json")
    terminal = Terminal(gudgeon, "answer", asked.json["question"]["id"], "value=no")
    code, shown = terminal.finish()
    assert code == 0 and "wrapping" in shown and "the box is small" in shown


@pytest.mark.parametrize("words", [["call"], ["call", "--detach"]], ids=" ".join)
def test_content_is_shown_as_without_the_background_process(gudgeon, run, desk, words):
    connect(gudgeon, desk, name="desk")
    for tool in ("pictures", "only_data", "evil_error"):
        assert gudgeon(*words, "desk", tool) == gudgeon("call", desk, tool)
    assert gudgeon(*words, "desk", "pictures", "--save", "saved").code == 0
    assert len(list((gudgeon.folder / "saved").iterdir())) == 3


@pytest.mark.parametrize("era", ERAS, ids=IDS)
def test_listening_gets_log_messages_of_other_commands(gudgeon, run, desk, era):
    connect(gudgeon, desk, *era, name="desk")
    listening = gudgeon.start("listen", "desk", "--json", "--log-level", "debug")
    assert listening.stderr.readline() == "listening; Ctrl-C ends it\n"
    assert gudgeon("call", "desk", "log").err.startswith("[info]")
    # From 2026-07-28 on log messages belong to a request, here of another command.
    expected = ["debug", "info", "warning"] if era else []
    # Log messages and changes are received separately, in any order.
    found = [json.loads(listening.stdout.readline()) for _ in expected]
    gudgeon("call", "desk", "grow")
    found.append(json.loads(listening.stdout.readline()))
    while found[-1]["event"] != "listChanged":
        found.append(json.loads(listening.stdout.readline()))
    listening.kill()
    listening.communicate()
    levels = [event["level"] for event in found if event["event"] == "log"]
    assert levels == expected, found
