"""The official Python SDK 2.x over HTTP, as its `run()` serves it: mcp2_http.py PORT."""

import sys

from mcp.server.mcpserver import MCPServer

app = MCPServer("bench", log_level="ERROR")


@app.tool()
def echo(text: str) -> str:
    return text


app.run("streamable-http", port=int(sys.argv[1]))
