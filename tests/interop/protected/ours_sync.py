"""Gudgeon's blocking Python client signs in at the servers of its jobs and calls a tool."""

from follow import follow, perform_all, print_line

from gudgeon import SyncClient
from gudgeon.auth import OAuth


def perform(job):
    with SyncClient(job["url"], auth=OAuth(on_redirect=follow)) as client:
        tools = client.list_tools()
        print_line({"tools": len(tools), "text": client.call_tool(job["tool"]).text})


perform_all(perform)
