"""Evil servers that are processes: how they end, what they hold open, and what they write beside messages."""

import os
import signal
import subprocess

from rows import MIB, REFUSED, STDIO, forever, row, wait
from server_rows import marked
from servers import text

NOWHERE = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}

# ── ends ─────────────────────────────────────────────────────────────────────────────────────────────


@row("a child that ends at once", "connect|lost", STDIO, action="connect", method="begin")
def _(peer):
    os._exit(7)


@row("a child that is killed during a call", "lost", STDIO)
def _(peer, id):
    os.kill(os.getpid(), signal.SIGKILL)


@row("a child that stops itself", "timeout", STDIO)
def _(peer, id):
    os.kill(os.getpid(), signal.SIGSTOP)


# ── pipes ────────────────────────────────────────────────────────────────────────────────────────────


@row("a child that closes its output and lives on", "connect|lost", STDIO, action="connect", method="begin")
def _(peer):
    os.close(1)
    wait()


@row("a child that closes its input and lives on", "lost", STDIO, action="call twice")
def _(peer, id):
    os.close(0)
    peer.reply(id, text("right"))
    wait()


@row("a grandchild in a session of its own that keeps the pipes", "right", STDIO)
def _(peer, id):
    # It ends by itself: no client can find it.
    subprocess.Popen(["sleep", "15"], start_new_session=True)
    peer.reply(id, text("right"))


@row("a child that leaves 100 grandchildren", "right", STDIO)
def _(peer, id):
    for _ in range(100):
        subprocess.Popen(["sleep", "600"], env=marked(), **NOWHERE)
    peer.reply(id, text("right"))


# ── output ───────────────────────────────────────────────────────────────────────────────────────────


@row("a line without end", "protocol|timeout", STDIO)
def _(peer, id):
    while True:
        peer.raw(b"x" * 65536)


GARBAGE = {"lines": b"no message\n", "lines of 4 KiB": b"x" * 4095 + b"\n", "empty lines": b"\n", "brackets": b"[[[[\n"}
for kind, line in GARBAGE.items():

    @row(f"{kind} that are not messages, without end", "timeout", STDIO)
    def _(peer, id, line=line):
        block = line * (65536 // len(line))
        forever(peer, lambda: peer.raw(block))


@row(
    "lines that are not messages, without end, in place of a handshake",
    REFUSED + "|timeout",
    STDIO,
    action="connect",
    method="begin",
)
def _(peer):
    forever(peer, lambda: peer.raw(b"no message\n" * 5000))


@row("4 MiB of binary output before the first message", "right", STDIO, method="begin")
def _(peer):
    peer.raw(os.urandom(4 * MIB) + b"\n")


@row("output without end after the end of input", "right", STDIO)
def _(peer, id):
    peer.reply(id, text("right"))
    subprocess.Popen(["yes", '{"jsonrpc":"2.0","method":"x"}'], env=marked())


@row("20 MiB on stderr without a line end", "right", STDIO)
def _(peer, id):
    subprocess.run(["head", "-c", "20971520", "/dev/zero"], stdout=2, check=True)
    peer.reply(id, text("right"))
