"""A server without a library: schemas and names of random shapes and lengths, the same for the same first argument."""

import json
import random
import sys

chosen = random.Random(int(sys.argv[1]))
DEEPEST = 4


def word(length):
    return "".join(chosen.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(length))


def words(most):
    return " ".join(word(chosen.randint(1, 24)) for _ in range(chosen.randint(0, most)))


def name():
    return word(chosen.randint(1, 60))


def member():
    end = chosen.choice(["", "", "", "", "", "-x", " y", "1", "$", "é", "本", "Ж", "가", "é-"])
    return word(chosen.choice([3, 8, 15, 30, 45])) + end


NAMES = [word(length).capitalize() for length in (2, 10, 25, 40)]


def value():
    return chosen.choice(
        [word(chosen.randint(1, 24)), word(12) + '"', "日本" + word(3), chosen.randint(0, 99), True, None]
    )


def members(depth):
    names = [member() for _ in range(chosen.randint(0 if depth == 0 else 1, 4))]
    return {
        "type": "object",
        "description": words(20),
        "properties": {key: schema(depth + 1) for key in names},
        "required": [key for key in names if chosen.random() < 0.5],
    }


SIMPLE = [
    *(lambda kind=kind: {"type": kind} for kind in ("string", "integer", "number", "boolean", "null")),
    lambda: True,
    lambda: {"enum": [value() for _ in range(chosen.randint(1, 6))]},
    lambda: {"const": word(chosen.randint(1, 70))},
]
COMPOSED = [
    lambda depth: {"type": "array", "items": schema(depth)},
    lambda depth: {"type": "array", "prefixItems": several(depth, 1), "items": False},
    lambda depth: {"type": "array", "prefixItems": several(depth, 1), "items": schema(depth)},
    lambda depth: {"type": "object", "additionalProperties": schema(depth)},
    lambda depth: {"type": "object", "additionalProperties": False},
    lambda depth: {chosen.choice(["anyOf", "oneOf"]): several(depth, 2)},
    lambda depth: {"anyOf": [schema(depth), {"type": "null"}]},
    lambda depth: {"$ref": f"#/$defs/{chosen.choice(NAMES)}"},
    members,
]


def several(depth, least):
    return [schema(depth) for _ in range(chosen.randint(least, 4))]


def schema(depth):
    if depth >= DEEPEST or chosen.random() < 0.3:
        return chosen.choice(SIMPLE)()
    return chosen.choice(COMPOSED)(depth + 1)


def root(own):
    return {**own, "$defs": {key: schema(1) for key in NAMES}}


def wrapped():
    result = {"type": "object", "properties": {"result": schema(0)}, "required": ["result"]}
    return root({**result, "x-gudgeon-wrapped": True})


def tool():
    inputs = [
        lambda: root(members(0)),
        lambda: {"type": "object"},
        lambda: {"type": "object", "additionalProperties": schema(2)},
    ]
    outputs = [lambda: {}, lambda: {"outputSchema": wrapped()}, lambda: {"outputSchema": root(members(0))}]
    own = {"name": name(), "description": words(40), "inputSchema": chosen.choice(inputs)()}
    return {**own, **chosen.choice(outputs)()}


def template():
    uri = "x://{a}/" + word(chosen.randint(1, 50)) + chosen.choice(["", "{?q}", "{b-c}"])
    return {"uriTemplate": uri, "name": name()}


def prompt():
    arguments = [{"name": member(), "required": chosen.random() < 0.5} for _ in range(chosen.randint(0, 3))]
    return {"name": name(), "arguments": arguments}


RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "serverInfo": {"name": name(), "version": "1"},
        "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
    },
    "tools/list": {"tools": [tool() for _ in range(40)]},
    "resources/list": {"resources": [{"uri": "x://" + name(), "name": name()} for _ in range(15)]},
    "resources/templates/list": {
        "resourceTemplates": [{"uriTemplate": "x://{?q}", "name": name()}, *(template() for _ in range(15))]
    },
    "prompts/list": {"prompts": [prompt() for _ in range(15)]},
}

for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in RESULTS:
        answer["result"] = RESULTS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
