"""A server whose tools have schemas of many shapes, and hostile names and descriptions."""

from typing import Literal, TypedDict

from gudgeon import Server

app = Server('sha"pes */ """', version="2.0")


class Address(TypedDict):
    """Where somebody lives."""

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
    return 1 + max((depth(it) for it in node.get("children", [])), default=0)


@app.tool
def move(person: Person, to: Address) -> Person:
    """Move."""
    return {**person, "address": to}


@app.tool(name="list")
def list_all(limit: int = 10) -> list[Address]:
    """List addresses."""
    return [{"street": "Main", "zip": None}][:limit]


SHAPES = {
    "type": "object",
    "properties": {
        "kebab-case": {"type": "string", "description": 'Ends """ and */ and \\ here \\'},
        "class": {"enum": ["a", "b", 1, True, None]},
        "__mangled": {"type": "integer"},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False},
        "open_pair": {"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "boolean"}},
        "scores": {"type": "object", "additionalProperties": {"type": "number"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
        "kind": {"const": "shape"},
        "nullable": {"type": ["string", "null"]},
        "tree": {"$ref": "#/$defs/Json"},
        "shape": {"anyOf": [{"$ref": "#/$defs/circle"}, {"$ref": "#/$defs/square"}]},
        "both": {
            "allOf": [{"$ref": "#/$defs/circle"}, {"type": "object", "properties": {"colour": {"type": "string"}}}]
        },
        "nothing": {"type": "object", "additionalProperties": False},
        "anything": True,
        "remote": {"$ref": "https://example.com/schema.json"},
        "self": {"$ref": "#/$defs/loop"},
        "long": {"enum": [f"a rather long alternative, number {n}" for n in range(6)]},
    },
    "required": ["kind", "undeclared"],
    "$defs": {
        "Json": {
            "anyOf": [
                {"type": "string"},
                {"type": "array", "items": {"$ref": "#/$defs/Json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
            ]
        },
        "circle": {
            "type": "object",
            "properties": {"type": {"const": "circle"}, "radius": {"type": "number"}},
            "required": ["type", "radius"],
        },
        "square": {
            "type": "object",
            "properties": {"type": {"const": "square"}, "side": {"type": "number"}},
            "required": ["type", "side"],
            "additionalProperties": True,
        },
        "loop": {"$ref": "#/$defs/loop"},
    },
}
PLAIN = {
    "type": "object",
    "properties": {name: SHAPES["properties"][name] for name in SHAPES["properties"] if name.isidentifier()},
    "required": ["kind"],
    "$defs": SHAPES["$defs"],
}
for banned in ("class", "__mangled"):
    PLAIN["properties"].pop(banned, None)

HOSTILE = '"""; import os; os._exit(3) */ process.exit(3); /* \' \\ \u202e` ${1}'


@app.tool(name="shapes-of_all kinds", description=HOSTILE, input=SHAPES)
def shapes(arguments: dict) -> str:
    return ",".join(sorted(arguments))


@app.tool(name="shapesOfAllKinds", description="@deprecated Not really.", input=PLAIN)
def shapes_again(arguments: dict) -> str:
    return ",".join(sorted(arguments))


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
