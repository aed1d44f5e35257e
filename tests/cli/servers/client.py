"""A client without any library: `client.py COMMAND [DEFECT…]` lists the tools of a server.

It is correct but for the defects, whose names are the ids of the checks that must find them.
"""

import json
import shlex
import subprocess
import sys

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
command, *defects = sys.argv[1:]
server = subprocess.Popen(shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8")
sent = 0


def bad(name):
    return name in defects


def write(message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    server.stdin.flush()


def request(method, params):
    """Sends a request; returns the result. Requests of the server that come before it are answered."""
    global sent
    sent += 0 if bad("client.ids") and method == "tools/list" else 1
    key = sent
    if "modern" in defects:
        meta = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        if bad("client.meta"):
            del meta[META + "clientCapabilities"]
        params = {**params, "_meta": meta}
    write({"id": key, "method": method, "params": params})
    while True:
        message = json.loads(server.stdout.readline())
        if "method" not in message:
            return message["result"]
        respond(message)


def respond(message):
    if message["method"] == "ping":
        write({"id": message["id"], "result": {"pong": 1} if bad("client.ping") else {}})
    else:
        code = -32600 if bad("client.unknown-request") else -32601
        write({"id": message["id"], "error": {"code": code, "message": "unknown"}})


def main():
    if bad("client.connects"):
        return
    if bad("client.valid"):
        server.stdin.write("hello\n")
    if "modern" in defects:
        request("server/discover", {})
    else:
        if bad("client.first"):
            request("ping", {})
        params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        if bad("client.initialize"):
            del params["clientInfo"]
        request("initialize", params)
        if bad("client.cancels-initialize"):
            write({"method": "notifications/cancelled", "params": {"requestId": sent}})
        if bad("client.initialized"):
            request("prompts/list", {})
        write({"method": "notifications/initialized"})
    if bad("client.cancels-own"):
        write({"method": "notifications/cancelled", "params": {"requestId": 99}})
    if bad("client.no-responses"):
        write({"id": "nobody", "result": {}})
    page = request("tools/list", {})
    while "nextCursor" in page and not (bad("client.pages") and not page["nextCursor"]):
        cursor = page["nextCursor"]
        page = request("tools/list", {"cursor": cursor.upper() if bad("client.cursor") else cursor})
        if bad("client.cursor"):
            page = request("tools/list", {"cursor": ""})


main()
if bad("client.closes"):
    server.kill()
else:
    server.stdin.close()
server.wait()
