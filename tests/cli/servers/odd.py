"""Servers that a user would not expect: `odd.py KIND`, over stdio, without any library.

`silent` never answers, `exits` ends at once, `garbage` prints lines that are not messages, `http` speaks HTTP, and
`future` speaks a revision that nobody knows. `plain` is a server of 2025-06-18 that checks nothing, and whose tool
returns structured content without a text, and `chatty` the same, which prints at its start.
"""

import json
import sys
import time

SCHEMA = {
    "type": "object",
    "required": ["title"],
    "properties": {"title": {"type": "string"}, "limit": {"type": "integer", "maximum": 9, "description": "The most"}},
}
HUGE = "123456789012345678901234567890"


def send(text):
    print(text, flush=True)


def answer(id, result):
    send(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}))


def fail(id, code, message):
    send(json.dumps({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}))


def serve(revision):
    for line in sys.stdin:
        message = json.loads(line)
        id, params = message.get("id"), message.get("params", {})
        match message.get("method"):
            case "initialize":
                info = {"name": "plain", "version": "1"}
                capabilities = {"tools": {}, "resources": {}}
                answer(id, {"protocolVersion": revision, "capabilities": capabilities, "serverInfo": info})
            case "tools/list":
                names = ["find", "raw"]
                answer(id, {"tools": [{"name": name, "inputSchema": SCHEMA} for name in names]})
            case "tools/call" if params["name"] == "raw":
                # The digits are more than a float or a 64-bit integer has.
                send(f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[],"structuredContent":{{"number":{HUGE}}}}}}}')
            case "tools/call" if params["name"] == "find":
                answer(id, {"content": [], "structuredContent": {"given": params.get("arguments")}})
            case "tools/call":
                fail(id, -32602, "no")
            case "resources/list":
                answer(id, {"resources": []})
            case method if id is not None:
                fail(id, -32601, f"unknown method {method}")


match sys.argv[1]:
    case "silent":
        sys.stdin.read()
    case "exits":
        print("the configuration is missing", file=sys.stderr)
        sys.exit(3)
    case "garbage":
        send("Starting the server …")
        send("\x1b[2J{not a message")
        sys.stdin.readline()
        time.sleep(0.1)
    case "http":
        send("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r")
        sys.stdin.read()
    case "future":
        serve("2199-01-01")
    case "plain":
        serve("2025-06-18")
    case "chatty":
        send("Starting \x1b[31mup")
        serve("2025-06-18")
