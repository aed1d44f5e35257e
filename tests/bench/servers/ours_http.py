"""Gudgeon over HTTP with `def` tools: ours_http.py PORT [options as JSON]."""

import gc
import json
import sys

from gudgeon import Server

app = Server("bench")


@app.tool
def echo(text: str) -> str:
    return text


@app.tool
def collect() -> int:
    return gc.collect()


port, *options = sys.argv[1:]
app.run(f"http://127.0.0.1:{port}/mcp", **json.loads(options[0] if options else "{}"))
