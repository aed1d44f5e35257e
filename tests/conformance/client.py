"""The fixture client in Python: does what a scenario of the official suite requires, with the server at a URL.

MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_PROTOCOL_VERSION the revision to speak, and
MCP_CONFORMANCE_CONTEXT has the scenario's data as JSON.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from gudgeon import Client
from gudgeon.auth import ClientCredentials, EnterpriseManaged, OAuth, WorkloadIdentity
from gudgeon.types import ElicitRequest, Implementation, ListChanged

CONTEXT: dict[str, Any] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


async def lists_tools(client: Client) -> None:
    await client.list_tools()


async def connects(client: Client) -> None:
    """Does nothing more, because the server declares no capability."""


async def pings(client: Client) -> None:
    """Sends a request after connecting, to a server that declares no capability."""
    await client.ping()


async def adds_numbers(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def elicits_defaults(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("test_client_elicitation_defaults")


async def reconnects(client: Client) -> None:
    await client.list_tools()
    await client.call_tool("test_reconnection")


async def answers_rounds(client: Client) -> None:
    for name in ("echo_state", "unrelated", "no_state", "no_result_type"):
        await client.call_tool(f"test_mrtr_{name}")


async def uses_everything(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})
    for resource in await client.list_resources():
        await client.read_resource(resource.uri)
    for prompt in await client.list_prompts():
        await client.get_prompt(prompt.name)


async def makes_given_calls(client: Client) -> None:
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def calls_listed_tools(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, dict.fromkeys(tool.input_schema.get("properties", {}), "us-west1"))


async def echoes_schema(client: Client) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


async def calls_protected_tools(client: Client) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})


SCENARIOS: dict[str, Callable[[Client], Awaitable[None]]] = {
    "initialize": connects,
    "tools_call": adds_numbers,
    "elicitation-sep1034-client-defaults": elicits_defaults,
    "sse-retry": reconnects,
    "request-metadata": pings,
    "sep-2322-client-request-state": answers_rounds,
    "http-standard-headers": uses_everything,
    "http-custom-headers": makes_given_calls,
    "http-invalid-tool-headers": calls_listed_tools,
    "json-schema-ref-no-deref": lists_tools,
    "json-schema-2020-12-preservation": echoes_schema,
}


def answer(request: ElicitRequest) -> dict[str, bool]:
    """Confirms, where that is asked, and leaves everything else to the schema's defaults."""
    return {"confirmed": True} if "confirmed" in (request.schema or {}).get("properties", {}) else {}


def credentials(scenario: str) -> Any:
    """Returns the credentials for a scenario of authorization."""
    client = {name: CONTEXT[name] for name in ("client_id", "client_secret") if name in CONTEXT}
    if scenario == "auth/client-credentials-basic":
        return ClientCredentials(**client)
    if scenario == "auth/client-credentials-jwt":
        key = {"private_key": CONTEXT["private_key_pem"], "algorithm": CONTEXT["signing_algorithm"]}
        return ClientCredentials(**client, **key)
    if scenario == "auth/enterprise-managed-authorization":
        return EnterpriseManaged(
            identity_token=CONTEXT["idp_id_token"],
            idp=CONTEXT["idp_issuer"],
            idp_client_id=CONTEXT["idp_client_id"],
            **client,
        )
    if scenario == "auth/wif-jwt-bearer":
        return WorkloadIdentity(token=CONTEXT["valid_jwt"], client_id=CONTEXT["client_id"])
    return OAuth(
        **client,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
        dpop=scenario.startswith("auth/dpop"),
        on_redirect=redirect,
    )


async def redirect(url: str) -> str:
    """Requests a URL of an authorization server that asks no user, and returns the one to which it redirects."""

    def request() -> str:
        parts = urlsplit(url)
        connection = http.client.HTTPConnection(parts.netloc)
        connection.request("GET", f"{parts.path}?{parts.query}")
        return connection.getresponse().headers["Location"]

    return await asyncio.to_thread(request)


def ignore_change(change: ListChanged) -> None:
    """Makes the client listen for changes of lists."""


async def main() -> None:
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    is_protected = scenario.startswith("auth/")
    client = Client(
        sys.argv[1],
        revision=os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"],
        timeout=20,
        auth=credentials(scenario) if is_protected else None,
        client_info=Implementation("conformance-client", "1.0.0"),
        roots=["file:///workspace"],
        on_elicit=answer,
        on_sample=lambda request: "Paris",
        on_list_changed=ignore_change,
    )
    async with client:
        await (calls_protected_tools if is_protected else SCENARIOS[scenario])(client)


asyncio.run(main())
