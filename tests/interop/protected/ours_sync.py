"""Gudgeon's blocking Python client signs in at a server and calls a tool."""

import json
import sys

from follow import follow

from gudgeon import SyncClient
from gudgeon.auth import OAuth

url, tool = sys.argv[1:]
with SyncClient(url, auth=OAuth(on_redirect=follow)) as client:
    tools = client.list_tools()
    print(json.dumps({"tools": len(tools), "text": client.call_tool(tool).text}))
