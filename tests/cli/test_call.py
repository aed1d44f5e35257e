"""`gudgeon call`: arguments are converted by the schema and checked, results are shown, errors have exit codes."""

import json
import os
import stat

import pytest

FOUND = {"title": "Emma", "limit": 10, "tags": None, "sort": "title", "exact": False, "price": None}
HUGE = "123456789012345678901234567890"


@pytest.mark.parametrize(
    ("words", "changed"),
    [
        (["limit=5"], {"limit": 5}),
        (["limit:=5"], {"limit": 5}),
        (["exact=true"], {"exact": True}),
        (["price=1.5"], {"price": 1.5}),
        (["price=null"], {}),
        (["sort=year"], {"sort": "year"}),
        (["tags=novel"], {"tags": ["novel"]}),
        (["tags=novel", "tags=1"], {"tags": ["novel", "1"]}),
        (['tags:=["novel"]'], {"tags": ["novel"]}),
        (['tags=["novel", "old"]'], {"tags": ["novel", "old"]}),
        (["title=5"], {"title": "5"}),
        (["title=a=b:=c"], {"title": "a=b:=c"}),
        (["title=@@ada"], {"title": "@ada"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_texts_become_what_the_schema_says(gudgeon, desk, words, changed):
    if not words[0].startswith("title"):
        words = ["title=Emma", *words]
    outcome = gudgeon("call", desk, "search", *words)
    assert outcome.code == 0, outcome.err
    assert outcome.json == {**FOUND, **changed}


def test_arguments_come_from_files_and_standard_input(gudgeon, desk):
    (gudgeon.folder / "title.txt").write_text("Emma\n2", encoding="utf-8")
    (gudgeon.folder / "tags.json").write_text('["a", "b"]', encoding="utf-8")
    (gudgeon.folder / "all.json").write_text('{"title": "Emma", "limit": 3}', encoding="utf-8")
    files = gudgeon("call", desk, "search", "title=@title.txt", "tags:=@tags.json")
    assert files.json == {**FOUND, "title": "Emma\n2", "tags": ["a", "b"]}
    # A value on the command line replaces the one in the object.
    mixed = gudgeon("call", desk, "search", "@all.json", "limit=4")
    assert mixed.json == {**FOUND, "limit": 4}
    for name in ["-", "@-"]:
        assert gudgeon("call", desk, "search", name, text='{"title": "Emma"}').json == FOUND
    assert gudgeon("call", desk, "search", "title=@-", text="Emma").json == FOUND


def test_standard_input_is_read_only_where_it_is_named(gudgeon, shelf):
    process = gudgeon.start("call", shelf, "add", "a=1", "b=2")
    # The pipe stays open: a command that read it would wait.
    assert process.wait(timeout=60) == 0
    process.communicate()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["title=Emma", "limit=many"], ["argument 'limit'", 'expected an integer, got "many"', "The most results"]),
        (["title=Emma", "limit:=1.5"], ["argument 'limit'", "got 1.5", "limit  integer, default 10  The most results"]),
        (["limit=5"], ["missing argument 'title'", "title  string, required  A part of the title"]),
        ([], ["missing argument 'title'", "title  string, required"]),
        (["title:=5"], ["argument 'title'", "title  string, required"]),
        (["title=Emma", "sort=name"], ["argument 'sort'", 'one of "title", "year"']),
        (["title=Emma", "titel=Emma"], ["unknown argument 'titel'", "did you mean 'title'?"]),
        (["title=Emma", "title=Persuasion"], ["argument 'title'", "twice"]),
        (["title=Emma", "limit:=x"], ["argument 'limit'", "invalid JSON"]),
        (["title"], ['"title" is not an argument', "KEY=VALUE"]),
        (["@-"], ["standard input", "JSON object"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_arguments_that_do_not_fit_are_named_with_their_line(gudgeon, desk, words, parts):
    outcome = gudgeon("call", desk, "search", *words)
    assert (outcome.code, outcome.out) == (2, "")
    for part in parts:
        assert part in outcome.err


def test_a_file_that_is_missing_is_named(gudgeon, desk):
    outcome = gudgeon("call", desk, "search", "title=@nowhere.txt")
    assert outcome.code == 10 and "nowhere.txt" in outcome.err


def test_arguments_are_sent_unchecked_if_the_user_wants_that(gudgeon, odd):
    checked = gudgeon("call", "find", "limit=10", *odd("plain"))
    assert checked.code == 2 and "limit  integer, at most 9  The most" in checked.err
    unchecked = gudgeon("call", "find", "limit=10", "--no-check", *odd("plain"))
    assert unchecked.json == {"given": {"limit": 10}}


def test_an_unknown_tool_has_a_suggestion(gudgeon, desk, odd):
    for words in ([], ["title=Emma"]):
        outcome = gudgeon("call", desk, "serach", *words)
        assert outcome.code == 8 and 'did you mean "search"?' in outcome.err
        strange = gudgeon("call", "zzz", *words, *odd("plain"))
        assert strange.code == 8 and "the server has find, raw" in strange.err


def test_structured_content_without_a_text_is_json_with_its_digits(gudgeon, odd):
    outcome = gudgeon("call", "raw", *odd("plain"))
    assert (outcome.code, outcome.out) == (0, f'{{\n  "number": {HUGE}\n}}\n')
    outcome = gudgeon("call", "find", f"title={'x'}", f"big:={HUGE}", *odd("plain"))
    assert outcome.code == 0
    assert json.loads(outcome.out)["given"]["big"] == int(HUGE)


def test_json_is_the_result_of_the_protocol(gudgeon, shelf):
    outcome = gudgeon("call", shelf, "add", "a=1", "b=2", "--json")
    assert outcome.code == 0
    assert outcome.json["content"] == [{"type": "text", "text": "3"}]
    assert outcome.json["structuredContent"] == 3
    failed = gudgeon("call", shelf, "fail", "--json")
    assert (failed.code, failed.err) == (1, "")
    assert failed.json["isError"] is True


def test_content_that_is_no_text_is_described(gudgeon, desk):
    outcome = gudgeon("call", desk, "pictures")
    assert outcome.code == 0
    assert outcome.out.splitlines() == [
        "A picture:",
        "[image, image/png, 70 B; --save FOLDER saves it]",
        "[audio, audio/wav, 8 B; --save FOLDER saves it]",
        "[link to resource desk://lamp, lamp, text/plain; `gudgeon read` reads it]",
        "remember the milk",
        "[resource, application/octet-stream, 3 B; --save FOLDER saves it]",
    ]


def test_content_is_saved_as_files_and_replaces_none(gudgeon, desk):
    for _ in range(2):
        outcome = gudgeon("call", desk, "pictures", "--save", "out/new")
        assert outcome.code == 0, outcome.err
    folder = gudgeon.folder / "out/new"
    names = ["data-2.bin", "data.bin", "pictures-2.png", "pictures-2.wav", "pictures.png", "pictures.wav"]
    assert sorted(file.name for file in folder.iterdir()) == names
    assert (folder / "data.bin").read_bytes() == b"\x00\x01\x02"
    assert (folder / "pictures.png").read_bytes().startswith(b"\x89PNG")
    assert "saved as out/new/pictures-2.png" in outcome.out


def test_a_folder_that_can_not_be_written_is_named(gudgeon, desk):
    (gudgeon.folder / "file").write_text("")
    outcome = gudgeon("call", desk, "pictures", "--save", "file/new")
    assert outcome.code == 10 and "file/new" in outcome.err


def test_a_read_only_home_is_enough(gudgeon, shelf):
    os.chmod(gudgeon.home, stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert gudgeon("call", shelf, "add", "a=1", "b=2") == (0, "3\n", "")
    finally:
        os.chmod(gudgeon.home, stat.S_IRWXU)
    assert list(gudgeon.home.iterdir()) == []


def test_every_revision_is_spoken(gudgeon, shelf):
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]:
        assert gudgeon("call", shelf, "add", "a=1", "b=2", "--revision", revision) == (0, "3\n", "")
    outcome = gudgeon("call", shelf, "add", "--revision", "2020-01-01")
    assert outcome.code == 2 and "2025-11-25" in outcome.err


def test_time_limits(gudgeon, shelf):
    # Progress restarts the one, but not the other.
    assert gudgeon("call", shelf, "wait", "seconds=1", "--timeout", "30").code == 0
    outcome = gudgeon("call", shelf, "wait", "seconds=60", "--max-timeout", "0.5")
    assert outcome.code == 4 and "--max-timeout sets the limit" in outcome.err
