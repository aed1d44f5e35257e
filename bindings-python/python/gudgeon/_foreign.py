"""Names that people bring from other SDKs, and what they are called here."""

from __future__ import annotations

_NAMES = {
    "server": {
        "add_tool": "app.tool(fn)",
        "add_resource": "app.resource(uri)(fn)",
        "add_prompt": "app.prompt(fn)",
        "completion": "app.complete(target, argument)",
        "list_tools": "app.tools",
        "list_resources": "app.resources",
        "list_prompts": "app.prompts",
        "remove_tool": "app.tools.remove(name)",
        "custom_route": "app.asgi() inside your own ASGI app",
        "http_app": "app.asgi()",
        "streamable_http_app": "app.asgi()",
        "sse_app": "app.asgi(legacy_sse=True)",
        "run_async": "await app.serve()",
        "run_stdio_async": "await app.serve()",
        "import_server": "app.mount(prefix, other)",
        "settings": "the options of Server(…)",
    },
    "context": {
        "report_progress": "ctx.progress(progress, total)",
        "request_context": "ctx itself: ctx.request_id, ctx.meta, ctx.lifespan",
        "fastmcp": "ctx.server",
        "mcp_server": "ctx.server",
        "client_id": "ctx.principal",
        "list_roots": "ctx.roots()",
        "create_message": "ctx.sample(messages)",
        "get_state": "ctx.state[key]",
        "set_state": "ctx.state[key] = value",
    },
    "client": {
        "initialize": "done by `async with`, by `with`, or by `await client.connect()`",
        "initialize_result": "client.server, client.capabilities and client.instructions",
        "server_info": "client.server",
        "server_capabilities": "client.capabilities",
        "get_server_capabilities": "client.capabilities",
        "protocol_version": "client.revision",
        "is_connected": "a client is connected inside its `async with` or `with`",
        "send_ping": "client.ping()",
        "send_request": "client.request(method, params)",
        "send_notification": "client.notify(method, params)",
        "send_roots_list_changed": "client.set_roots(roots)",
        "set_logging_level": "client.set_log_level(level)",
        "subscribe_resource": "client.subscribe(uri)",
        "unsubscribe_resource": "leaving what client.subscribe(uri) gave",
        "listen": "client.subscribe(*uris, tools=…, resources=…, prompts=…)",
        "session": "client itself",
    },
    "module": {
        "FastMCP": "Server",
        "MCPServer": "Server",
        "McpServer": "Server",
        "ClientSession": "Client",
        "get_context": "current_context()",
        "stdio_client": "Client([command, …])",
        "stdio_server": "app.run()",
    },
}


def foreign_attribute(where: str, owner: str, name: str) -> AttributeError:
    """The error for a name that is not there: it names ours, where it is another SDK's."""
    ours = _NAMES[where].get(name)
    what = f"{owner!r} has no {name!r}"
    return AttributeError(f"{what}: here it is {ours}" if ours else what, name=name)
