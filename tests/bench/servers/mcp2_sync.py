"""The official Python SDK 2.x with `def` tools."""

import time

from mcp.server.mcpserver import MCPServer

app = MCPServer("bench", log_level="ERROR")


@app.tool()
def echo(text: str) -> str:
    return text


@app.tool()
def sleepy(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


app.run()
