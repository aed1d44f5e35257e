"""Evil clients that leave answers unread: what is kept for them, and that who reads slowly gets every answer."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import speak
from connections import call, check, modern
from evil_clients import STREAMS, row
from processes import MIB


@row("a client that stops reading while it calls", *STREAMS, memory=128 * MIB)
def _(server):
    connection = server.open()
    sent = connection.flood(
        json.dumps(call("big", "b", size=100_000)).encode() + (b"\n" if server.transport != "ws" else b""), 1.5
    )
    check(sent < 64 * MIB, f"{sent} bytes were read from a client that reads nothing")
    if server.transport == "stdio":
        drain(connection)


def drain(connection):
    """Reads what was not read, so that the server serves as before."""
    last = connection.rest + json.dumps(modern("tools/list", id="honest")).encode() + b"\n"
    sending = threading.Thread(target=connection.raw, args=(last,), daemon=True)
    sending.start()
    while b'"honest"' not in connection.receive(60):
        pass
    sending.join()


# The server reads the calls before the first answer is read. The handlers wait for the reader, who gets every answer:
# 600 MiB, because a result has its text twice. Those that run at the same time may each have one. An honest client
# would be measured while these handlers compute.
@row("short calls for long answers", *STREAMS, memory=400 * MIB, has_victim=False)
def _(server):
    connection = server.open()
    ids = range(300)

    def send():
        for id in ids:
            connection.send(json.dumps(call("big", id, size=MIB)).encode())

    # A server that has enough to do stops reading.
    sending = threading.Thread(target=send, daemon=True)
    sending.start()
    answers = {}
    while len(answers) < len(ids):
        answer = json.loads(connection.receive(60))
        # All rows share standard input and output, and others may have left answers there.
        if answer.get("id") in ids:
            answers[answer["id"]] = len(answer["result"]["content"][0]["text"])
    sending.join()
    check(set(answers.values()) == {MIB}, "answers are not whole", answers)


@row("short calls for long answers of many connections", "http", memory=512 * MIB, has_victim=False)
def _(server):
    def ask(_):
        with server.connect() as connection:
            text = json.dumps(call("big", 1, size=768 * 1024)).encode()
            headers = {"MCP-Protocol-Version": speak.MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "big"}
            speak.post(connection, server.path, text, headers)
            ready.wait(60)
            answer = connection.response()
            return answer.status, len(answer.body)

    count = 300
    ready = threading.Barrier(count)
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(ask, range(count)))
    # A request that comes while half of what may be unread is unread is refused.
    whole = [answer for answer in answers if answer[0] == 200 and answer[1] > 768 * 1024]
    refused = [answer for answer in answers if answer[0] == 503]
    check(len(whole) + len(refused) == count, "calls are not answered", answers)
    check(len(whole) > count / 4, "most calls are refused", len(refused))


@row("errors that nobody reads", *STREAMS)
def _(server):
    connection = server.open()
    connection.flood(b"{" + b"\n" * (server.transport != "ws"), 1.5)
    if server.transport == "stdio":
        drain(connection)
