"""A server whose tools take and return values of many types."""

from typing import Literal, TypedDict

from gudgeon import Server

app = Server("shapes", version="2.0", schema_profile="full")


class Address(TypedDict):
    """A person's address."""

    street: str
    zip: str | None


class Node(TypedDict, total=False):
    value: int
    children: list["Node"]


class Person(TypedDict):
    name: str
    address: Address
    mood: Literal["good", "bad", 'so "so"']


@app.tool
def greet(person: Person, loud: bool = False) -> str:
    """Greet a person.

    Args:
        person: Who is greeted.
    """
    text = f"Hello {person['name']} of {person['address']['street']}"
    return text.upper() if loud else text


@app.tool
def depth(node: Node) -> int:
    """Measure a tree."""
    return 1 + max((depth(child) for child in node.get("children", [])), default=0)


@app.tool
def move(person: Person, to: Address) -> Person:
    """Move."""
    return {**person, "address": to}


@app.tool(name="list")
def list_all(limit: int = 10) -> list[Address]:
    """List addresses."""
    return [{"street": "Main", "zip": None}][:limit]


@app.tool
def nothing() -> None:
    """Do nothing."""


@app.resource("shapes://about", mime_type="text/plain")
def about() -> str:
    """Tell about the shapes."""
    return "round"


@app.resource("shapes://{owner}/{number}")
def one(owner: str, number: int) -> str:
    """Read one shape."""
    return f"{owner} {number}"


@app.prompt
def draw(subject: str, style: str = "plain") -> str:
    """Ask for a drawing."""
    return f"Draw {subject} in {style} style."


if __name__ == "__main__":
    app.run()
