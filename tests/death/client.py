"""A client of a server whose tool does not stop. Starts the server, calls the tool, and ends once its input ends.

Arguments: how it ends ("close", "exit" or "error"), the tool, the file that the tool writes, and the server's command.
"""

import sys
import threading
import time
from pathlib import Path

from gudgeon import Command, SyncClient

end, tool, at, *words = sys.argv[1:]
client = SyncClient(Command(*words), timeout=None)
client.connect()


def call() -> None:
    try:
        client.call_tool(tool, {"at": at})
    except Exception:
        pass  # the server or the client has ended


threading.Thread(target=call, daemon=True).start()
while not Path(at).exists():
    time.sleep(0.01)
print("ready", flush=True)
sys.stdin.read()
if end == "close":
    client.close()
if end == "error":
    raise RuntimeError("the program failed")
