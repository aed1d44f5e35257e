"""A server protected by FastMCP, with an authorization server of its own: `fastmcp_server.py <port>`."""

import sys

from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

port = int(sys.argv[1])
app = FastMCP(
    "protected",
    auth=InMemoryOAuthProvider(
        base_url=f"http://127.0.0.1:{port}",
        client_registration_options=ClientRegistrationOptions(enabled=True),
    ),
)


@app.tool
def greet() -> str:
    return "hello"


app.run(transport="http", host="127.0.0.1", port=port, path="/mcp", show_banner=False)
