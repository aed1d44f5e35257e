/** A server that accepts one token, and its authorization server, which issues that token. */
import { createServer } from "node:http";

const RESULTS = {
  initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "protected", version: "1" } },
  "tools/list": { tools: [{ name: "echo", inputSchema: { type: "object" } }] },
  "tools/call": { content: [{ type: "text", text: "done" }] },
};

export class Protected {
  token = "t0ken";
  /** The forms that the token endpoint received. */
  forms = [];
  /** The `Authorization` headers that the server received. */
  sent = [];
  #server = createServer((request, response) => void this.#answer(request, response));

  static async open() {
    const opened = new Protected();
    await new Promise((resolve) => opened.#server.listen(0, "127.0.0.1", resolve));
    opened.origin = `http://127.0.0.1:${opened.#server.address().port}`;
    opened.url = `${opened.origin}/mcp`;
    return opened;
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #answer(request, response) {
    let body = "";
    for await (const chunk of request) body += chunk;
    const reply = (status, content) =>
      response.writeHead(status, { "content-type": "application/json", ...(status === 401 && { "www-authenticate": "Bearer" }) }).end(JSON.stringify(content));
    if (request.method !== "POST") return reply(...this.#document(request.url));
    if (request.url === "/token") {
      this.forms.push(Object.fromEntries(new URLSearchParams(body)));
      return reply(200, { access_token: this.token, token_type: "Bearer", refresh_token: "r" });
    }
    if (request.url === "/register") return reply(201, { client_id: "registered" });
    this.sent.push(request.headers.authorization);
    if (request.headers.authorization !== `Bearer ${this.token}`) return reply(401, {});
    const { id, method } = JSON.parse(body);
    return id === undefined ? reply(202, {}) : reply(200, { jsonrpc: "2.0", id, result: RESULTS[method] });
  }

  #document(path) {
    const { origin, url } = this;
    const documents = {
      "/.well-known/oauth-protected-resource/mcp": { resource: url, authorization_servers: [origin] },
      "/.well-known/oauth-authorization-server": {
        issuer: origin, authorization_endpoint: `${origin}/authorize`, token_endpoint: `${origin}/token`, registration_endpoint: `${origin}/register`,
        code_challenge_methods_supported: ["S256"],
      },
    };
    return documents[path] ? [200, documents[path]] : [path === "/mcp" ? 405 : 404, {}];
  }
}

/** Does what a user and an authorization server do: returns the URL to which the browser is redirected. */
export function agree(url) {
  const { searchParams: query } = new URL(url);
  return `${query.get("redirect_uri")}?code=c0de&state=${query.get("state")}`;
}
