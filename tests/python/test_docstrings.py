"""Google, NumPy and Sphinx docstrings, and whatever else people write."""

import pytest

from gudgeon._schema.docstrings import parse

GOOGLE = """Add two numbers.

    More about it.

    Args:
        a: the first one
        b (int, optional): the second one,
            on two lines
        *rest: more

    Returns:
        The sum.
    """
NUMPY = """Add two numbers.

    More about it.

    Parameters
    ----------
    a : int
        the first one
    b, c : int, optional
        the second one,
        on two lines

    Returns
    -------
    int
        The sum.
    """
SPHINX = """Add two numbers.

    More about it.

    :param a: the first one
    :param int b: the second one,
        on two lines
    :type b: int
    :returns: The sum.
    """


def test_google() -> None:
    text, found = parse(GOOGLE)
    assert text == "Add two numbers.\n\nMore about it.\n\nReturns:\n    The sum."
    assert found == {"a": "the first one", "b": "the second one, on two lines", "rest": "more"}


def test_numpy() -> None:
    text, found = parse(NUMPY)
    assert text == "Add two numbers.\n\nMore about it.\n\nReturns\n-------\nint\n    The sum."
    assert found == {"a": "the first one", "b": "the second one, on two lines", "c": "the second one, on two lines"}


def test_sphinx() -> None:
    text, found = parse(SPHINX)
    assert text == "Add two numbers.\n\nMore about it.\n\n:returns: The sum."
    assert found == {"a": "the first one", "b": "the second one, on two lines"}


def test_attributes_of_a_class() -> None:
    assert parse("A book.\n\nAttributes:\n    id: its number\n") == ("A book.", {"id": "its number"})


@pytest.mark.parametrize(
    ("doc", "text"),
    [
        (None, ""),
        ("", ""),
        (5, ""),
        ("One line.", "One line."),
        ("Args:", "Args:"),
        ("Args:\n", "Args:"),
        ("Parameters\n----------", ""),
        (":param", ":param"),
        ("Args: none", "Args: none"),
        ("(((\n\nArgs:\n    ((: x\n  bad\n", "((("),
        ("\n\n   \n", ""),
        ("All.\n\nNumbers:\n    1: one", "All.\n\nNumbers:\n    1: one"),
    ],
)
def test_never_raises(doc: str | None, text: str) -> None:
    assert parse(doc)[0] == text


LONG = 200_000


@pytest.mark.parametrize(
    "doc",
    [
        ":param " + "a" * LONG,
        ":param " + " " * LONG + "!",
        ":param " + "*" * LONG + ":",
        "Text.\n\n:param a: x\n    :" + "a" * LONG,
        "Args" + " " * LONG + "!",
        "Text.\n\nArgs:\n    a" + "(" * LONG + ": x",
        "Text.\n\nArgs:\n    a(" + "(()" * LONG + "!",
        "Text.\n\nArgs:\n    a" + " " * LONG + "!",
        "Parameters\n----------\n" + "a, " * LONG + "!",
        "Parameters\n----------\na" + " " * LONG + "!",
    ],
    ids=map(str, range(10)),
)
def test_long_lines_are_read_in_linear_time(doc: str) -> None:
    # With the square of this length, each would take minutes.
    assert parse(doc)[1] in ({}, {"a": f"x :{'a' * LONG}"})


def test_types_in_parentheses_may_contain_others() -> None:
    assert parse("Text.\n\nArgs:\n    a (Callable[[tuple(int, (str))], None], optional): x")[1] == {"a": "x"}
