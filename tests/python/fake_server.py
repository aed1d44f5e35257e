"""A server that behaves as it is told: `fake_server.py <mode>`; every line that it reads goes to $FAKE_LOG, if set."""

import json
import os
import sys
import time

MODE = sys.argv[1]
TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": True}},
    {"name": "slow", "inputSchema": {"type": "object"}},
    {"name": "patient", "inputSchema": {"type": "object"}, "annotations": {"idempotentHint": True}},
    {"name": "typed", "inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
]


def send(**frame):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **frame}) + "\n")
    sys.stdout.flush()


def initialize(params):
    capabilities = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
    return {
        "protocolVersion": params["protocolVersion"],
        "capabilities": capabilities,
        "serverInfo": {"name": "fake", "version": "1"},
    }


def text(value):
    return {"content": [{"type": "text", "text": value}]}


def ask(method, params):
    send(id="q", method=method, params=params)
    while True:
        frame = read()
        if frame.get("id") == "q" and "method" not in frame:
            return frame.get("result") or frame["error"]


def call(id, name, arguments, token):
    if name == "echo":
        send(id=id, result=text(json.dumps(arguments)))
    elif name == "die":
        print("the last line of all", file=sys.stderr, flush=True)
        os._exit(7)
    elif name == "pid":
        send(id=id, result=text(str(os.getpid())))
    elif name == "patient":
        # The first process that gets this call does not answer it, and is killed then.
        with open(os.environ["FAKE_LOG"], encoding="utf-8") as log:
            if log.read().count('"patient"') == 1:
                time.sleep(600)
        send(id=id, result=text("patience"))
    elif name == "steps":
        for step in range(arguments["steps"]):
            time.sleep(arguments["pause"])
            params = {
                "progressToken": token,
                "progress": step + 1,
                "total": arguments["steps"],
                "message": f"step {step}",
            }
            send(method="notifications/progress", params=params)
        send(id=id, result=text("done"))
    elif name == "log":
        send(method="notifications/message", params={"level": "info", "logger": "fake", "data": {"n": 1}})
        send(id=id, result=text("logged"))
    elif name == "flood":
        for n in range(arguments["messages"]):
            send(method="notifications/message", params={"level": "info", "data": n})
        if arguments["answers"]:
            send(id=id, result=text("flooded"))
    elif name == "change":
        send(method="notifications/tools/list_changed")
        send(method="notifications/resources/updated", params={"uri": "fake://a"})
        send(method="notifications/resources/updated", params={"uri": "fake://other"})
        send(id=id, result=text("changed"))
    elif name == "ask":
        send(id=id, result=text(json.dumps(ask(arguments["method"], arguments["params"]))))
    elif name == "odd":
        send(id=id, result={"content": 3})
    elif name == "url":
        elicitation = {"mode": "url", "elicitationId": "e1", "url": "https://example.org/in", "message": "Sign in"}
        send(id=id, error={"code": -32042, "message": "Sign in first", "data": {"elicitations": [elicitation]}})
    elif name == "count":
        send(id=id, result=text(str(CANCELLED)))
    # "slow" never answers


CANCELLED = 0


def read():
    line = sys.stdin.readline()
    if not line:
        if MODE == "stubborn":
            time.sleep(600)
        sys.exit(0)
    log = os.environ.get("FAKE_LOG")
    if log:
        with open(log, "a", encoding="utf-8") as file:
            file.write(line)
    return json.loads(line)


def main():
    global CANCELLED
    if MODE == "crash":
        print("Traceback: no such module", file=sys.stderr)
        sys.exit(3)
    if MODE == "mute":
        time.sleep(600)
    while True:
        frame = read()
        method, id, params = frame.get("method"), frame.get("id"), frame.get("params") or {}
        if method == "initialize":
            if MODE == "refuses":
                send(id=id, error={"code": -32000, "message": "no room"})
            elif MODE == "future":
                send(id=id, result={**initialize(params), "protocolVersion": "2030-01-01"})
            else:
                send(id=id, result=initialize(params))
        elif method == "server/discover":
            if MODE == "dies_of_probe":
                sys.exit(1)
            if MODE != "ignores_probe":
                send(id=id, error={"code": -32601, "message": "Method not found"})
        elif method == "tools/list":
            if MODE == "endless":
                time.sleep(0.02)
                send(id=id, result={"tools": TOOLS, "nextCursor": str(id)})
            else:
                send(id=id, result={"tools": TOOLS})
        elif method == "tools/call":
            token = (params.get("_meta") or {}).get("progressToken")
            call(id, params["name"], params.get("arguments"), token)
        elif method == "notifications/cancelled":
            CANCELLED += 1
        elif id is not None and method is not None:
            send(id=id, result={})


main()
