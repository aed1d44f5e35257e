"""Gudgeon over HTTP with an `async def` tool: ours_http_async.py PORT."""

import sys

from gudgeon import Server

app = Server("bench")


@app.tool
async def echo(text: str) -> str:
    return text


app.run(f"http://127.0.0.1:{sys.argv[1]}/mcp")
