"""Names that people bring from other SDKs, and what they are called here."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

_NAMES = {
    "server": {
        "add_tool": "app.tool(fn)",
        "add_resource": "app.resource(uri)(fn)",
        "add_prompt": "app.prompt(fn)",
        "completion": "app.complete(target, argument)",
        "list_tools": "app.tools",
        "list_resources": "app.resources",
        "list_prompts": "app.prompts",
        "add_resource_template": "app.resource(uri_template)(fn)",
        "add_middleware": "app.middleware(fn)",
        "add_template": "app.resource(uri_template)(fn)",
        "resource_template": "app.resource(uri_template)",
        "remove_tool": "app.tools.remove(name)",
        "remove_resource": "app.resources.remove(uri)",
        "remove_prompt": "app.prompts.remove(name)",
        "get_tools": "app.tools",
        "get_tool": "app.tools[name]",
        "get_resources": "app.resources",
        "get_prompts": "app.prompts",
        "call_tool": "SyncClient(app).call_tool(name, arguments), or gudgeon.testing.connect_sync(app)",
        "set_logging_level": "ctx.log(level, data)",
        "custom_route": "app.route(path, methods=[…])",
        "http_app": "app.asgi()",
        "streamable_http_app": "app.asgi()",
        "sse_app": "app.asgi(legacy_sse=True)",
        "run_async": "await app.serve()",
        "run_stdio_async": "await app.serve()",
        "run_http_async": "await app.serve('http://127.0.0.1:8000/mcp')",
        "run_streamable_http_async": "await app.serve('http://127.0.0.1:8000/mcp')",
        "run_sse_async": "await app.serve('http://127.0.0.1:8000/mcp', legacy_sse=True)",
        "as_proxy": "this version has no proxy; app.mount(prefix, other) joins servers of one process",
        "from_openapi": "register a function for each operation: app.tool(fn)",
        "from_fastapi": "register a function for each operation: app.tool(fn)",
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
        "list_resources": "ctx.server.resources",
        "list_prompts": "ctx.server.prompts",
        "send_notification": "ctx.progress(…) or ctx.log(level, data)",
        "send_tool_list_changed": "done by every change of app.tools",
        "elicit_form": "ctx.elicit(message, type)",
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
        "StdioServerParameters": "Client([command, …])",
        "streamablehttp_client": "Client(url)",
        "streamable_http_client": "Client(url)",
        "sse_client": "Client(url)",
        "StdioTransport": "Client([command, …])",
        "StreamableHttpTransport": "Client(url)",
        "get_http_headers": "ctx.headers",
        "Middleware": "an async function (request, next) under @app.middleware",
        "CurrentContext": "a parameter ctx: Context, or current_context()",
        "TextContent": "Text",
        "ImageContent": "Image",
        "AudioContent": "Audio",
        "ErrorData": "ProtocolError",
        "ResourceError": "ResourceNotFound or ProtocolError",
    },
}


def foreign_name(name: str, frame: FrameType) -> Exception:
    """Returns the error for a name that the package does not have; `frame` is the code that looks it up.

    Python replaces an AttributeError of `from gudgeon import …` by a message of its own, which hides ours.
    """
    from opcode import opmap

    ours = _NAMES["module"].get(name)
    if ours is not None and frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from 'gudgeon': here it is {ours}", name="gudgeon")
    return foreign_attribute("module", "gudgeon", name)


def foreign_attribute(where: str, owner: str, name: str) -> AttributeError:
    """The error for a name that is not there: it names ours, where it is another SDK's."""
    ours = _NAMES[where].get(name)
    what = f"{owner!r} has no {name!r}"
    return AttributeError(f"{what}: here it is {ours}" if ours else what, name=name)
