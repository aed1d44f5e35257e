"""A server in Python: over stdio, or at the address that its argument names."""

import sys

from gudgeon import Server

app = Server("smoke")


@app.tool
def add(a: int, b: int) -> int:
    return a + b


app.run(*sys.argv[1:])
