"""A server of all revisions without any library, correct but for the defects that its arguments name.

The name of a defect is the id of the check that must find it. `defective.py [DEFECT…]` serves over stdio,
`defective.py http PORT [DEFECT…]` at http://127.0.0.1:PORT/mcp, and over HTTP+SSE of 2024-11-05 at /sse.
"""

import contextlib
import json
import sys
import time

from defective_protocol import Connection, Listening, parse


def serve_stdio(defects):
    def send(message):
        if message is not None:
            print(json.dumps(message), flush=True)

    connection = Connection(defects, send)
    for line in sys.stdin:
        message, broken = parse(line)
        if broken is not None:
            if not connection.bad("messages.parse-error"):
                send(broken)
            continue
        if connection.bad("messages.duplicate-keys") and line.count('"jsonrpc"') == 2 and "duplicate" in line:
            continue
        if connection.bad("handshake.probe") and connection.version is None and "server/discover" in line:
            return
        with contextlib.suppress(Listening):
            send(None if message is None else connection.answer(message))
    if connection.bad("stdio.eof"):
        time.sleep(600)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["http"]:
        # Takes longer to import than everything else.
        from defective_http import serve_http

        serve_http(int(arguments[1]), arguments[2:])
    else:
        serve_stdio(arguments)
