"""`gudgeon list`, `read`, `prompt`, `complete` and `ping`."""

import subprocess

import pytest


def test_all_lists_that_a_server_declares_are_shown(gudgeon, desk):
    outcome = gudgeon("list", desk)
    assert outcome.code == 0
    headings = [line for line in outcome.out.splitlines() if line and "  " not in line]
    assert headings == ["Tools", "Resources", "Resource templates", "Prompts"]
    assert "search            Find books.\n" in outcome.out
    assert "desk://lamp       The lamp on the desk.\n" in outcome.out
    assert "desk://drawers/{number}/{name}  The content of a drawer.\n" in outcome.out


def test_one_list_has_no_heading(gudgeon, desk):
    assert gudgeon("list", desk, "prompts") == (0, "review  Ask for a review.\n", "")
    outcome = gudgeon("list", desk, "prompt")
    assert outcome.code == 2 and "tools, resources, templates and prompts" in outcome.err


def test_long_lists_show_schemas(gudgeon, desk):
    outcome = gudgeon("list", desk, "tools", "prompts", "--long")
    assert outcome.code == 0
    assert "Find books. The search is not sensitive to case.\n" in outcome.out
    assert "  Marked as: read-only\n  Arguments:\n    title  string, required  A part of the title\n" in outcome.out
    assert '    sort  one of "title", "year", default "title"\n' in outcome.out
    assert "    code  required\n    tone  optional  The tone of the review\n" in outcome.out


def test_json_has_an_array_for_each_list(gudgeon, desk):
    lists = gudgeon("list", desk, "--json").json
    assert list(lists) == ["tools", "resources", "resourceTemplates", "prompts"]
    assert lists["tools"][0]["inputSchema"]["required"] == ["title"]
    assert list(gudgeon("list", desk, "resources", "--json").json) == ["resources"]


def test_lists_that_a_server_lacks_are_left_out_unless_named(gudgeon, odd):
    # It declares resources, but knows no templates.
    outcome = gudgeon("list", "--json", *odd("plain"))
    assert outcome.code == 0 and list(outcome.json) == ["tools", "resources"]
    named = gudgeon("list", "prompts", *odd("plain"))
    assert (named.code, named.out) == (7, "") and "prompts" in named.err
    empty = gudgeon("list", "resources", *odd("plain"))
    assert empty == (0, "", "the server has no resources\n")


def test_a_resource_is_written_as_it_is(gudgeon, desk):
    assert gudgeon("read", desk, "desk://lamp") == (0, "lit\n", "")
    words = gudgeon.words("read", desk, "desk://pixel.png")
    done = subprocess.run(words, capture_output=True, env=gudgeon.environment, timeout=60, check=True)
    assert done.stdout.startswith(b"\x89PNG") and len(done.stdout) == 70
    saved = gudgeon("read", desk, "desk://pixel.png", "--save", ".")
    assert saved.out == "[resource, image/png, 70 B: saved as ./pixel.png]\n"
    assert (gudgeon.folder / "pixel.png").read_bytes() == done.stdout
    assert gudgeon("read", desk, "desk://lamp", "--json").json["contents"][0]["text"] == "lit\n"


def test_a_template_is_filled_in(gudgeon, desk):
    template = "desk://drawers/{number}/{name}"
    assert gudgeon("read", desk, template, "number=4", "name=a b").out == "a b in drawer 4"
    for words, part in [
        (["number=4"], "the variable 'name'"),
        (["number=4", "name=a", "nmae=b"], "no variable 'nmae'"),
        ([], "the variable 'number'"),
    ]:
        outcome = gudgeon("read", desk, template, *words)
        assert (outcome.code, outcome.out) == (2, "") and part in outcome.err


def test_an_unknown_resource_has_a_suggestion(gudgeon, desk):
    for revision in ["2025-11-25", "2026-07-28"]:
        outcome = gudgeon("read", desk, "desk://lmap", "--revision", revision)
        assert outcome.code == 8 and 'did you mean "desk://lamp"?' in outcome.err


def test_a_prompt_is_shown_with_its_roles(gudgeon, desk):
    outcome = gudgeon("prompt", desk, "review", "code=x = 1", "tone=frank")
    assert outcome == (0, "user:\nReview this in a frank tone: x = 1\n", "")
    (gudgeon.folder / "main.py").write_text("y = 2", encoding="utf-8")
    messages = gudgeon("prompt", desk, "review", "code=@main.py", "--json").json["messages"]
    assert messages[0]["content"]["text"] == "Review this in a friendly tone: y = 2"


@pytest.mark.parametrize(
    ("words", "code", "part"),
    [
        (["review"], 2, "missing argument 'code'"),
        (["reveiw", "code=x"], 8, 'did you mean "review"?'),
        (["review", "code=x", "code=y"], 2, "given twice"),
    ],
)
def test_a_prompt_that_can_not_be_got(gudgeon, desk, words, code, part):
    outcome = gudgeon("prompt", desk, *words)
    assert (outcome.code, outcome.out) == (code, "") and part in outcome.err


def test_completions_are_lines(gudgeon, desk):
    assert gudgeon("complete", desk, "review", "tone", "fri") == (0, "friendly\n", "")
    assert gudgeon("complete", desk, "review", "tone").out == "friendly\nfrank\nformal\n"
    assert gudgeon("complete", desk, "review", "tone", "fr", "code=fresh").out == "friendly\nfrank\nfresh\n"
    assert gudgeon("complete", desk, "review", "tone", "fri", "--json").json["values"] == ["friendly"]


def test_pings_have_statistics(gudgeon, shelf):
    outcome = gudgeon("ping", shelf, "--count", "3", "--interval", "0.01")
    assert outcome.code == 0
    assert "shelf 1.0: 3 round trips, minimum " in outcome.out
    times = gudgeon("ping", shelf, "--json", "--revision", "2025-06-18").json
    assert times["server"] == {"name": "shelf", "version": "1.0"}
    assert times["revision"] == "2025-06-18"
    assert times["minimum"] <= times["average"] <= times["maximum"] and len(times["times"]) == 1
