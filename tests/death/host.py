"""Starts a server as a host does, prints its id, passes its own input on, and waits to be killed."""

import subprocess
import sys
import time

server = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
assert server.stdin is not None
print(server.pid, flush=True)
for line in sys.stdin.buffer:
    server.stdin.write(line)
    server.stdin.flush()
time.sleep(600)
