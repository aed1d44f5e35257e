"""A server without a library: schemas of every shape, and names and descriptions that try to leave their strings."""

import json
import sys

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
TOOLS = [
    {"name": "shapes-of_all kinds", "description": HOSTILE, "inputSchema": SHAPES, "outputSchema": SHAPES},
    {"name": "shapesOfAllKinds", "description": "@deprecated Not really.", "inputSchema": PLAIN},
    {"name": HOSTILE, "inputSchema": {"type": "object"}},
    *(
        {"name": name, "inputSchema": {"type": "object"}}
        for name in ("class", "list", "then", "constructor", "client", "3")
    ),
    {"name": "root", "inputSchema": {"type": "object", "properties": {"again": {"$ref": "#"}}}},
    {"name": "union", "inputSchema": {"type": "object", "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}},
]
RESULTS = {
    "tools/list": {"tools": TOOLS},
    "resources/list": {"resources": [{"uri": 'x://"\\', "name": HOSTILE}, {"uri": "x://2", "name": "class"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "x://{a-b}/{class}{?q}", "name": "one"}]},
    "prompts/list": {
        "prompts": [{"name": HOSTILE, "arguments": [{"name": HOSTILE, "description": HOSTILE}, {"name": "a"}]}]
    },
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] == "initialize":
        answer["result"] = {
            "protocolVersion": "2025-06-18",
            "serverInfo": {"name": HOSTILE, "version": '1 """'},
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
        }
    elif request["method"] in RESULTS:
        answer["result"] = RESULTS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
