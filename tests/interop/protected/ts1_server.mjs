/** A server protected by the official TypeScript SDK 1.x, with its authorization server: `ts1_server.mjs <port>`. */
import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";

const require = createRequire(new URL("../../../.interop/node/package.json", import.meta.url));
const express = require("express");
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { getOAuthProtectedResourceMetadataUrl, mcpAuthRouter } = require("@modelcontextprotocol/sdk/server/auth/router.js");
const { requireBearerAuth } = require("@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js");

const port = Number(process.argv[2]);
const resourceServerUrl = new URL(`http://127.0.0.1:${port}/mcp`);

/** The SDK's provider interface, with a user who agrees to everything. */
const clients = new Map();
const codes = new Map();
const tokens = new Map();
const issue = (client, scopes, resource) => {
  const token = randomUUID();
  const expiresAt = Math.floor(Date.now() / 1000) + 3600;
  tokens.set(token, { token, clientId: client.client_id, scopes, resource, expiresAt });
  return { access_token: token, token_type: "bearer", expires_in: 3600, scope: scopes.join(" ") };
};
const provider = {
  clientsStore: {
    getClient: (id) => clients.get(id),
    registerClient: (client) => (clients.set(client.client_id, client), client),
  },
  async authorize(client, params, response) {
    const code = randomUUID();
    codes.set(code, { client, params });
    const target = new URL(params.redirectUri);
    target.searchParams.set("code", code);
    if (params.state !== undefined) target.searchParams.set("state", params.state);
    response.redirect(target.href);
  },
  challengeForAuthorizationCode: async (_client, code) => codes.get(code).params.codeChallenge,
  async exchangeAuthorizationCode(client, code, _verifier, _redirectUri, resource) {
    const { params } = codes.get(code);
    codes.delete(code);
    return issue(client, params.scopes ?? [], resource);
  },
  exchangeRefreshToken: async () => {
    throw new Error("no refresh tokens are issued");
  },
  async verifyAccessToken(token) {
    const found = tokens.get(token);
    if (found?.resource?.href !== resourceServerUrl.href) throw new Error("the token is for another resource");
    return found;
  },
};

const web = express();
web.use(mcpAuthRouter({ provider, issuerUrl: new URL(`http://127.0.0.1:${port}`), resourceServerUrl }));
const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(resourceServerUrl);
web.use("/mcp", requireBearerAuth({ verifier: provider, resourceMetadataUrl }), express.json());
web.post("/mcp", async (request, response) => {
  const server = new McpServer({ name: "protected", version: "1.0.0" });
  server.registerTool("greet", {}, () => ({ content: [{ type: "text", text: "hello" }] }));
  const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
  await server.connect(transport);
  await transport.handleRequest(request, response, request.body);
});
web.all("/mcp", (_request, response) => response.status(405).end());
web.listen(port, "127.0.0.1");
