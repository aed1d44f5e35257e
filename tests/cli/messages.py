"""A host that speaks JSON-RPC over stdio to the `gudgeon` command, message by message."""

import json
import queue
import subprocess
import threading

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "c", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}

# A server with a tool that asks and one that does not.
ASKING = """
from gudgeon import Context, Server
app = Server("asking")
@app.tool
async def ask(ctx: Context) -> str:
    await ctx.progress(1, 2, "asking")
    return str(await ctx.elicit("Really?", bool))
@app.tool
def add(a: int, b: int) -> int:
    return a + b
"""


def lines(file):
    """Returns the lines of a transcript."""
    return [json.loads(line) for line in file.read_text().splitlines()]


class Host:
    """Reads on a thread, so that a missing message fails a test instead of blocking it."""

    def __init__(self, process: subprocess.Popen):
        self.process = process
        self.received: queue.Queue = queue.Queue()
        self.errors: list[str] = []
        self.readers = [threading.Thread(target=self._read), threading.Thread(target=self._read_errors)]
        for reader in self.readers:
            reader.start()

    def _read(self):
        for line in self.process.stdout:
            self.received.put(json.loads(line))
        self.received.put(None)

    def _read_errors(self):
        self.errors.extend(self.process.stderr)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        for reader in self.readers:
            reader.join()

    def send(self, **message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def receive(self):
        """Returns the next message; None at the end of the output."""
        return self.received.get(timeout=60)

    def until(self, wanted):
        """Returns the first message for which `wanted` is true, and drops those before it."""
        while True:
            message = self.receive()
            assert message is not None, "".join(self.errors)
            if wanted(message):
                return message

    def request(self, number, method, **params):
        self.send(id=number, method=method, params=params)
        return self.until(lambda message: message.get("id") == number and "method" not in message)

    def initialize(self):
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        answer = self.request(0, "initialize", **client)
        self.send(method="notifications/initialized")
        return answer

    def end(self):
        """Closes the input; returns the exit code and standard error."""
        self.process.stdin.close()
        code = self.process.wait(timeout=60)
        for reader in self.readers:
            reader.join()
        return code, "".join(self.errors)
