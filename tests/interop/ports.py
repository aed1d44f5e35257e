"""Ports for servers that are started at an address known before, or again at the same one."""

import socket

_reserved = []


def reserve_port() -> int:
    """Returns a port of 127.0.0.1 that no other program is given while this process runs.

    A port that was only looked up and closed can be given to any other program before the server has it, for
    instance to a server of another suite, which then gets the requests. Here a socket stays bound to it. It never
    listens, so a server can (both have SO_REUSEADDR, as servers have by default), and connections are refused before.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _reserved.append(held)
    port: int = held.getsockname()[1]
    return port
