import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { AuthError, Client, ClientGroup, ConnectFailed, Server } from "gudgeon";

import { closing } from "./closing.mjs";

const schema = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
const results = {
  "server/discover": {
    resultType: "complete",
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {} },
    _meta: { "io.modelcontextprotocol/serverInfo": { name: "mock", version: "1" } },
  },
  initialize: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "mock", version: "1" } },
  "tools/list": { resultType: "complete", tools: [{ name: "echo", inputSchema: schema }] },
  "tools/call": { resultType: "complete", content: [{ type: "text", text: "done" }] },
};

/** A server of one era; `seen` has what came: the JSON-RPC method, or that of HTTP. After `restart` it knows no session. */
async function mock(t, { isModern, status, headers = {} }) {
  const seen = [];
  let session = "s-1";
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    const body = text === "" ? undefined : JSON.parse(text);
    const method = body?.method ?? request.method;
    seen.push({ method, headers: request.headers });
    if (status) return response.writeHead(status, headers).end("go away");
    if ((request.headers["mcp-session-id"] ?? session) !== session) return response.writeHead(404).end();
    if (request.method === "GET") return response.writeHead(405).end();
    if (body === undefined || body.id === undefined) return response.writeHead(202).end();
    if (method === (isModern ? "initialize" : "server/discover")) return response.writeHead(400).end("what?");
    const answer = JSON.stringify({ jsonrpc: "2.0", id: body.id, result: results[method] });
    if (method === "tools/call") return response.writeHead(200, { "Content-Type": "text/event-stream" }).end(`data: ${answer}\n\n`);
    const named = method === "initialize" ? { "Mcp-Session-Id": session } : {};
    response.writeHead(200, { "Content-Type": "application/json", ...named }).end(answer);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  return { url, seen, methods: () => seen.map((one) => one.method), restart: () => (session = "s-2") };
}

test("a URL is a server of the modern era", async (t) => {
  const { url, seen, methods } = await mock(t, { isModern: true });
  const client = await Client.connect(new URL(url));
  assert.deepEqual([client.revision, client.server.name, client.sessionId], ["2026-07-28", "mock", undefined]);
  assert.equal((await client.callTool("echo", { region: "eu" })).text, "done");
  await client.close();
  assert.deepEqual(methods(), ["server/discover", "tools/list", "tools/call"]);
  assert.equal(seen[2].headers["mcp-param-region"], "eu");
});

test("onReconnect is called when a session was replaced", async (t) => {
  const { url, restart } = await mock(t, { isModern: false });
  const heard = [];
  const onReconnect = ({ attempt, reason }) => heard.push([attempt, reason.name, reason.message]);
  await closing(Client.connect(url, { onReconnect }), async (client) => {
    await client.callTool("echo");
    assert.deepEqual(heard, []);
    restart();
    await client.callTool("echo");
    assert.equal(client.sessionId, "s-2");
  });
  assert.deepEqual(heard, [[1, "ConnectionLost", `${url}: the server did not know the session any more, so a new one was begun`]]);
});

test("a URL is a server of the eras before", async (t) => {
  const { url, methods } = await mock(t, { isModern: false });
  const client = await Client.connect(url);
  assert.deepEqual([client.revision, client.sessionId], ["2025-11-25", "s-1"]);
  const answers = await Promise.all(Array.from({ length: 20 }, () => client.callTool("echo", {})));
  assert.ok(answers.every(({ text }) => text === "done"));
  await client.close();
  assert.equal(methods().at(-1), "DELETE");
  assert.ok(methods().indexOf("GET") < methods().indexOf("tools/call"));
});

test("headers of the options and of an entry go with every request", async (t) => {
  const { url, seen } = await mock(t, { isModern: true });
  const entry = { type: "http", url, headers: { "X-Tenant": "a", Authorization: "old" } };
  const client = await Client.connect(entry, { headers: { Authorization: "Bearer secret" } });
  await client.listTools();
  await client.close();
  for (const { headers } of seen) assert.deepEqual([headers.authorization, headers["x-tenant"]], ["Bearer secret", "a"]);
});

test("a group takes URLs", async (t) => {
  const { url } = await mock(t, { isModern: true });
  const group = await ClientGroup.connect({ mcpServers: { net: { url } } });
  assert.deepEqual((await group.listTools()).map(({ name }) => name), ["net_echo"]);
  await group.close();
});

test("missing credentials are an error of their own", async (t) => {
  const { url } = await mock(t, { isModern: true, status: 401 });
  await assert.rejects(Client.connect(url), (error) => error instanceof AuthError && /HTTP 401/.test(error.message) && error.target === url);
});

test("errors carry the status and the credentials that are asked for", async (t) => {
  const challenge = 'Bearer resource_metadata="https://example.org/.well-known/oauth-protected-resource"';
  for (const status of [401, 403]) {
    const { url } = await mock(t, { isModern: true, status, headers: { "WWW-Authenticate": [challenge, "Basic"] } });
    for (const target of [url, url.replace("http", "ws")]) {
      await assert.rejects(Client.connect(target), (error) => {
        assert.deepEqual([error.name, error.status, error.wwwAuthenticate], ["AuthError", status, `${challenge}, Basic`]);
        return true;
      });
    }
  }
  const { url } = await mock(t, { isModern: true, status: 503 });
  await assert.rejects(Client.connect(url), (error) => error.status === 503 && !("wwwAuthenticate" in error));
});

test("errors of the system carry its code", async (t) => {
  const targets = ["http", "ws", "tcp"].map((scheme) => [`${scheme}://127.0.0.1:1`, "ECONNREFUSED"]);
  for (const [target, code] of [...targets, ["unix:/no/such/socket", "ENOENT"], [{ command: "gudgeon-no-such-program" }, "ENOENT"]]) {
    await assert.rejects(Client.connect(target), (error) => {
      assert.ok(error instanceof ConnectFailed);
      assert.deepEqual([error.systemCode, error.cause?.code], [code, code]);
      return true;
    });
  }
});

test("a failed connection is reported with the fix and without the query", async (t) => {
  for (const target of ["http://127.0.0.1:1/mcp?key=secret", "ws://127.0.0.1:1/mcp?key=secret", "tcp://127.0.0.1:1"]) {
    await assert.rejects(Client.connect(target), (error) => {
      assert.ok(error instanceof ConnectFailed);
      assert.equal(error.phase, "connect");
      assert.match(error.hint, /is the server running\?/);
      assert.doesNotMatch(`${error.message} ${error.target}`, /secret/);
      return true;
    });
  }
});

test("headers that can't be sent are refused at once, and their values are not shown", async () => {
  for (const [target, headers, message] of [
    ["http://127.0.0.1:1", { A: 1 }, /"A" must be a string/],
    ["http://127.0.0.1:1", ["a"], /object of names and values/],
    ["http://127.0.0.1:1", { A: "secret\nB: c" }, /line end/],
    [{ command: "a" }, { A: "b" }, /headers can be sent to http, https, ws and wss URLs only/],
    ["tcp://127.0.0.1:1", { A: "b" }, /headers can be sent to http, https, ws and wss URLs only/],
    ["tcp://127.0.0.1", undefined, /tcp:\/\/host:port/],
  ]) {
    await assert.rejects(Client.connect(target, { headers }), (error) => {
      assert.ok(error instanceof TypeError, String(error));
      assert.match(error.message, message);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  }
});

test("the option fetch sends every request of a client, and streams are read as they arrive", async (t) => {
  const app = new Server("shelf");
  let tell;
  app.tool("slow", {}, async (_, ctx) => {
    const told = new Promise((resolve) => (tell = resolve));
    await ctx.progress(1);
    await told;
    return "done";
  });
  const here = await app.listen("http://127.0.0.1:0/mcp");
  t.after(() => here.close());
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const sent = [];
    const through = async (url, init) => {
      const { origin, pathname } = new URL(url);
      sent.push([origin, pathname, init.method, init.redirect, init.headers.get("x-tenant")]);
      // A name that no network knows: the function decides where requests go.
      assert.equal(origin, "https://shelf.invalid");
      return fetch(here.url, init);
    };
    const client = await Client.connect("https://shelf.invalid/mcp", { revision, fetch: through, headers: { "X-Tenant": "north" } });
    // The progress arrives before the response is complete.
    const call = client.callTool("slow", {}, { onProgress: () => tell() });
    assert.equal((await call).text, "done");
    await client.close();
    assert.ok(sent.length >= 2 && sent.some(([, , method]) => method === "POST"), JSON.stringify(sent));
    for (const [, pathname, , redirect, tenant] of sent) assert.deepEqual([pathname, redirect, tenant], ["/mcp", "manual", "north"]);
  }
});

test("a request that the option fetch does not need any more is aborted", async (t) => {
  const app = new Server("shelf");
  app.tool("forever", {}, async (_, ctx) => {
    await ctx.progress(1);
    await new Promise((resolve) => ctx.signal.addEventListener("abort", resolve));
  });
  const here = await app.listen("http://127.0.0.1:0/mcp");
  t.after(() => here.close());
  let aborted;
  const isAborted = new Promise((resolve) => (aborted = resolve));
  const through = (url, init) => {
    if (String(init.body).includes("forever")) init.signal.addEventListener("abort", aborted);
    return fetch(url, init);
  };
  const client = await Client.connect(here.url, { revision: "2026-07-28", fetch: through });
  const controller = new AbortController();
  const call = client.callTool("forever", {}, { signal: controller.signal, onProgress: () => controller.abort() });
  await assert.rejects(call, (error) => error.name === "AbortError");
  await isAborted;
  await client.close();
});

test("an error of the option fetch is logged, and the request fails", async () => {
  const logged = [];
  const logger = { debug() {}, info() {}, warn() {}, error: (...parts) => logged.push(parts.map(String).join(" ")) };
  for (const broken of [async () => Promise.reject(new Error("no route")), async () => "no response"]) {
    const connecting = Client.connect("https://shelf.invalid/mcp", { fetch: broken, logger, retry: "never" });
    await assert.rejects(connecting, (error) => /shelf\.invalid/.test(error.message));
  }
  assert.match(logged[0], /fetch failed: .*no route/);
  assert.match(logged.at(-1), /the option fetch must return a Response/);
  await assert.rejects(Client.connect("https://shelf.invalid/mcp", { fetch: 3 }), /^TypeError: Client\.connect\(\): fetch must be a function such as fetch, not 3$/);
});
