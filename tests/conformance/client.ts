/**
 * The fixture client in TypeScript: does what a scenario of the official suite requires, with the server at a URL.
 *
 * MCP_CONFORMANCE_SCENARIO names the scenario, MCP_CONFORMANCE_PROTOCOL_VERSION the revision to speak, and
 * MCP_CONFORMANCE_CONTEXT has the scenario's data as JSON.
 */
import { get } from "node:http";

import { Client, type ElicitRequest, type Revision } from "gudgeon";
import { type ClientAuth, clientCredentials, enterpriseManaged, oauth, workloadIdentity } from "gudgeon/auth";

const { MCP_CONFORMANCE_SCENARIO = "", MCP_CONFORMANCE_PROTOCOL_VERSION, MCP_CONFORMANCE_CONTEXT = "{}" } = process.env;
const IS_PROTECTED = MCP_CONFORMANCE_SCENARIO.startsWith("auth/");

async function listTools(client: Client): Promise<void> {
  await client.listTools();
}

const scenarios: Record<string, (client: Client) => Promise<void>> = {
  // The servers of this scenario and of "request-metadata" declare no capability.
  initialize: async () => {},
  tools_call: async (client) => {
    await client.listTools();
    await client.callTool("add_numbers", { a: 5, b: 3 });
  },
  "elicitation-sep1034-client-defaults": async (client) => {
    await client.listTools();
    await client.callTool("test_client_elicitation_defaults");
  },
  "sse-retry": async (client) => {
    await client.listTools();
    await client.callTool("test_reconnection");
  },
  "request-metadata": async (client) => {
    await client.ping();
  },
  "sep-2322-client-request-state": async (client) => {
    for (const name of ["echo_state", "unrelated", "no_state", "no_result_type"]) {
      await client.callTool(`test_mrtr_${name}`);
    }
  },
  "http-standard-headers": async (client) => {
    for (const tool of await client.listTools()) await client.callTool(tool.name, {});
    for (const resource of await client.listResources()) await client.readResource(resource.uri);
    for (const prompt of await client.listPrompts()) await client.getPrompt(prompt.name);
  },
  "http-custom-headers": async (client) => {
    await client.listTools();
    const { toolCalls } = JSON.parse(MCP_CONFORMANCE_CONTEXT) as {
      toolCalls: { name: string; arguments: Record<string, unknown> }[];
    };
    for (const call of toolCalls) await client.callTool(call.name, call.arguments);
  },
  "http-invalid-tool-headers": async (client) => {
    for (const tool of await client.listTools()) {
      const names = Object.keys(tool.inputSchema.properties ?? {});
      await client.callTool(tool.name, Object.fromEntries(names.map((name) => [name, "us-west1"])));
    }
  },
  "json-schema-ref-no-deref": listTools,
  "json-schema-2020-12-preservation": async (client) => {
    const tool = (await client.listTools()).find((tool) => tool.name === "json_schema_2020_12_tool");
    await client.callTool("json_schema_echo", { schema: tool?.inputSchema });
  },
};

async function callProtectedTools(client: Client): Promise<void> {
  for (const tool of await client.listTools()) await client.callTool(tool.name, {});
}

/** The data of the scenarios of authorization. */
interface Given {
  client_id: string;
  client_secret: string;
  private_key_pem: string;
  signing_algorithm: string;
  idp_id_token: string;
  idp_issuer: string;
  idp_client_id: string;
  valid_jwt: string;
}

/** Returns the credentials for a scenario of authorization. */
function credentials(scenario: string): ClientAuth {
  const given = JSON.parse(MCP_CONFORMANCE_CONTEXT) as Partial<Given> as Given;
  const { client_id: clientId, client_secret: clientSecret } = given;
  switch (scenario) {
    case "auth/client-credentials-basic":
      return clientCredentials({ clientId, clientSecret });
    case "auth/client-credentials-jwt":
      return clientCredentials({ clientId, privateKey: given.private_key_pem, algorithm: given.signing_algorithm });
    case "auth/enterprise-managed-authorization":
      return enterpriseManaged({
        identityToken: given.idp_id_token, idp: given.idp_issuer, idpClientId: given.idp_client_id, clientId, clientSecret,
      });
    case "auth/wif-jwt-bearer":
      return workloadIdentity({ token: given.valid_jwt, clientId });
    default:
      return oauth({
        clientId,
        clientSecret,
        clientMetadataUrl: "https://conformance-test.local/client-metadata.json",
        dpop: scenario.startsWith("auth/dpop"),
        onRedirect: redirect,
      });
  }
}

/** Requests a URL of an authorization server that asks no user, and returns the one to which it redirects. */
function redirect(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    get(url, (response) => {
      response.resume();
      resolve(response.headers.location ?? "");
    }).on("error", reject);
  });
}

/** Confirms, where that is asked, and leaves everything else to the schema's defaults. */
function answer({ schema }: ElicitRequest): object {
  return "confirmed" in ((schema?.properties as object | undefined) ?? {}) ? { confirmed: true } : {};
}

const [, , url] = process.argv;
const perform = IS_PROTECTED ? callProtectedTools : scenarios[MCP_CONFORMANCE_SCENARIO];
if (!url || !perform) throw new Error(`there is no URL, or no scenario ${MCP_CONFORMANCE_SCENARIO}`);
const client = await Client.connect(url, {
  revision: MCP_CONFORMANCE_PROTOCOL_VERSION as Revision,
  timeoutMs: 20_000,
  auth: IS_PROTECTED ? credentials(MCP_CONFORMANCE_SCENARIO) : undefined,
  clientInfo: { name: "conformance-client", version: "1.0.0" },
  roots: ["file:///workspace"],
  onElicit: answer,
  onSample: () => "Paris",
  onListChanged: () => {}, // makes the client listen for changes of lists
});
try {
  await perform(client);
} finally {
  await client.close();
}
