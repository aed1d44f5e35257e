// Lists: their components for each caller, kept results of clients and the server, and warnings at registration.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, ResourceResult, Server, ToolError, ToolResult } from "gudgeon";
import { z } from "zod";

const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** The result of a modern request over `fetch`; an error is thrown. */
async function ask(app, method, params = {}, principal = undefined) {
  const name = params.name ?? params.uri;
  const request = new Request("http://localhost/mcp", {
    method: "POST",
    headers: {
      "content-type": "application/json", accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(name && { "mcp-name": name }),
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: META } }),
  });
  const { result, error } = await (await app.fetch(request, { principal })).json();
  if (error) throw Object.assign(new Error(error.message), { code: error.code });
  return result;
}

const who = (subject, ...scopes) => ({ subject, scopes: new Set(scopes), claims: {} });

test("a result is cached until the server is notified of a change", async () => {
  const app = new Server("t");
  const calls = [];
  app.resource("shelf://books/{id}", { cacheMs: 60_000 }, ({ id }) => `${id}: ${calls.push(id)}`);
  app.resource("shelf://about", { cacheMs: 60_000 }, async () => new ResourceResult(`about: ${calls.push("about")}`));
  app.resource("shelf://now", {}, () => `now: ${calls.push("now")}`);
  const client = await Client.connect(app);
  const read = async (uri) => (await client.readResource(uri)).text;
  assert.deepEqual([await read("shelf://books/7"), await read("shelf://books/7")], ["7: 1", "7: 1"]);
  assert.equal(await read("shelf://books/8"), "8: 2");
  assert.deepEqual([await read("shelf://about"), await read("shelf://about")], ["about: 3", "about: 3"]);
  app.notifyUpdated("shelf://books/7");
  assert.equal(await read("shelf://books/7"), "7: 4");
  assert.equal(await read("shelf://books/8"), "8: 2");
  assert.deepEqual([await read("shelf://now"), await read("shelf://now")], ["now: 5", "now: 6"]);
  app.resources.update("shelf://about", { title: "About" });
  assert.equal(await read("shelf://about"), "about: 7");
  await client.close();
});

test("cached results are not shared between principals, and concurrent reads share one call", async () => {
  const app = new Server("t");
  const calls = [];
  let goOn = () => {};
  const goes = new Promise((resolve) => (goOn = resolve));
  app.resource("shelf://mine", { cacheMs: 60_000 }, async (_, ctx) => {
    calls.push(ctx.principal?.subject);
    await goes;
    return `for ${ctx.principal?.subject}`;
  });
  const read = async (principal) => (await ask(app, "resources/read", { uri: "shelf://mine" }, principal)).contents[0].text;
  const all = [read(who("ada")), read(who("ada")), read(who("bob")), read(undefined)];
  goOn();
  assert.deepEqual(await Promise.all(all), ["for ada", "for ada", "for bob", "for undefined"]);
  assert.deepEqual(calls, ["ada", "bob", undefined]);
  assert.equal(await read(who("bob")), "for bob");
  assert.equal(await read(who("bob", "staff")), "for bob");
  assert.equal(calls.length, 4, "somebody who may do more is another");
  await app.close();
});

test("who sees a component is asked by who asks, each time", async () => {
  const app = new Server("t");
  let isOpen = true;
  const visible = (principal) => isOpen && (principal?.scopes.has("staff") ?? false);
  app.tool("add", {}, () => "ok");
  app.tool("drop", { visible }, (_, ctx) => `dropped by ${ctx.principal.subject}`);
  app.prompt("fire", { visible }, () => "fire");
  app.resource("staff://pay", { visible }, () => "much");
  app.resource("staff://people/{id}", { visible }, ({ id }) => id);
  const [ada, bob] = [who("ada", "staff"), who("bob")];
  const names = async (principal) => (await ask(app, "tools/list", {}, principal)).tools.map((tool) => tool.name);
  assert.deepEqual(await names(ada), ["add", "drop"]);
  for (const principal of [bob, undefined]) assert.deepEqual(await names(principal), ["add"]);
  assert.equal((await ask(app, "tools/call", { name: "drop" }, ada)).content[0].text, "dropped by ada");
  assert.equal((await ask(app, "resources/read", { uri: "staff://people/7" }, ada)).contents[0].text, "7");
  const hidden = [
    ["tools/call", { name: "drop" }, /Unknown tool: drop/],
    ["prompts/get", { name: "fire" }, /Unknown prompt: fire/],
    ["resources/read", { uri: "staff://pay" }, /Resource not found: staff:\/\/pay/],
    ["resources/read", { uri: "staff://people/7" }, /Resource not found/],
  ];
  for (const [method, params, message] of hidden) await assert.rejects(ask(app, method, params, bob), message);
  assert.deepEqual((await ask(app, "resources/list", {}, bob)).resources, []);
  assert.equal((await ask(app, "resources/templates/list", {}, ada)).resourceTemplates.length, 1);
  assert.equal((await ask(app, "tools/list", {}, ada)).cacheScope, "private");
  assert.equal((await ask(app, "resources/read", { uri: "staff://pay" }, ada)).cacheScope, "private");
  isOpen = false;
  assert.deepEqual(await names(ada), ["add"]);
  await app.close();
});

test("a mounted tool is seen by who sees it, and a predicate that fails hides", async (t) => {
  const errors = t.mock.method(console, "error", () => {});
  const [app, shelf] = [new Server("house"), new Server("shelf")];
  app.mount("shelf", shelf);
  shelf.tool("tidy", { visible: (principal) => principal !== undefined }, () => "ok");
  shelf.tool("broken", { visible: (principal) => principal.none.there }, () => "ok");
  shelf.tool("late", { visible: async () => true }, () => "ok");
  const names = async (principal) => (await ask(app, "tools/list", {}, principal)).tools.map((tool) => tool.name);
  assert.deepEqual(await names(who("ada")), ["shelf_tidy"]);
  assert.deepEqual(await names(undefined), []);
  assert.match(String(errors.mock.calls[0].arguments[0]), /visible of the tool "shelf_broken" failed: it stays hidden/);
  assert.match(String(errors.mock.calls[1].arguments[1]), /visible must return a boolean, not a promise/);
  await app.close();
});

test("cache hints for clients are sent as they were set", async () => {
  const app = new Server("t", { listTtlMs: 30_000 });
  app.tool("add", {}, () => "ok");
  app.resource("a://kept", { ttlMs: 1_500, cacheScope: "private" }, () => "kept");
  app.resource("a://plain", {}, () => "plain");
  const hint = async (method, params) => {
    const { ttlMs, cacheScope } = await ask(app, method, params);
    return [ttlMs, cacheScope];
  };
  for (const method of ["server/discover", "tools/list", "resources/list", "resources/templates/list"]) {
    assert.deepEqual(await hint(method), [30_000, "public"], method);
  }
  assert.deepEqual(await hint("resources/read", { uri: "a://kept" }), [1_500, "private"]);
  assert.deepEqual(await hint("resources/read", { uri: "a://plain" }), [0, "public"]);
  await app.close();
});

test("pages have 100 entries, and a cursor comes from its own server and list", async () => {
  const app = new Server("t");
  for (let at = 0; at < 101; at++) app.tool(`t${at}`, {}, () => "ok");
  app.prompt("p", {}, () => "ok");
  const { tools, nextCursor } = await ask(app, "tools/list");
  assert.equal(tools.length, 100);
  assert.deepEqual((await ask(app, "tools/list", { cursor: nextCursor })).tools.map((tool) => tool.name), ["t100"]);
  for (const cursor of ["dG9vbDow", "garbage", ""]) await assert.rejects(ask(app, "tools/list", { cursor }), { message: "invalid cursor", code: -32602 });
  await assert.rejects(ask(app, "prompts/list", { cursor: nextCursor }), /invalid cursor/);
  await app.close();
});

test("a completion goes with its prompt", async () => {
  const app = new Server("t");
  for (const turn of [1, 2]) {
    app.prompt("review", { args: z.object({ title: z.string() }) }, ({ title }) => title);
    app.complete("review", "title", (prefix) => [`${prefix}${turn}`]);
    const client = await Client.connect(app);
    assert.deepEqual((await client.complete("review", "title", "x")).values, [`x${turn}`]);
    await client.close();
    app.prompts.remove("review");
  }
  assert.equal((await ask(app, "server/discover")).capabilities.completions, undefined);
  await app.close();
});

test("results for a principal are private unless the resource is public", async () => {
  const app = new Server("t");
  app.tool("add", {}, () => "ok");
  app.resource("a://mine", { ttlMs: 1_000 }, (ctx) => ctx.principal?.subject ?? "nobody");
  app.resource("a://everybodys", { ttlMs: 1_000, cacheScope: "public" }, () => "all");
  const ada = who("ada");
  const scope = async (method, params, principal) => (await ask(app, method, params, principal)).cacheScope;
  assert.equal(await scope("resources/read", { uri: "a://mine" }, ada), "private");
  assert.equal(await scope("resources/read", { uri: "a://mine" }), "public");
  assert.equal(await scope("resources/read", { uri: "a://everybodys" }, ada), "public");
  assert.equal(await scope("tools/list", {}, ada), "public");
  app.middleware(async (request, next) => {
    const { items } = await next(request);
    return { tools: items.filter(() => request.ctx.principal === undefined), _meta: { "acme/by": "us" } };
  }, { on: "tools/list" });
  assert.equal(await scope("tools/list", {}, ada), "private");
  assert.equal((await ask(app, "tools/list", {}, ada))._meta["acme/by"], "us");
  await app.close();
});

test("invalid and reserved keys of _meta are warned about", async (t) => {
  const errors = t.mock.method(console, "error", () => {});
  const warned = [];
  const listen = (warning) => warned.push(warning.message);
  process.on("warning", listen);
  const app = new Server("t");
  app.tool("noted", { meta: { "com.example/ok": 1, "not ok": 1 } }, () => new ToolResult("x", { meta: { "dev.mcp/x": 1 } }));
  for (let time = 0; time < 2; time += 1) {
    assert.equal((await ask(app, "tools/call", { name: "noted" }))._meta["dev.mcp/x"], 1);
  }
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  assert.equal(warned.length, 1, warned.join("\n"));
  assert.match(warned[0], /^tool "noted": _meta: the key "not ok" is not a name that the specification allows/);
  const told = errors.mock.calls.map((call) => String(call.arguments[0])).filter((line) => line.includes("answered"));
  assert.equal(told.length, 1, told.join("\n"));
  assert.match(told[0], /tool "noted" answered with _meta: the key "dev\.mcp\/x" has a prefix that is reserved/);
  await app.close();
});

test("what hosts refuse is a warning of the process", async () => {
  const warned = [];
  const listen = (warning) => warned.push(warning.message);
  process.on("warning", listen);
  const app = new Server("t");
  app.tool("admin.list", {}, () => "ok");
  app.tool("listed", { input: { type: "object", properties: { a: { type: "array" } } } }, () => "ok");
  const usual = z.object({ a: z.string().nullable(), b: z.array(z.string()).optional(), c: z.record(z.string(), z.number()) });
  app.tool("usual", { input: usual }, () => {
    throw new ToolError("never");
  });
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  assert.equal(warned.length, 2, warned.join("\n"));
  assert.match(warned[0], /^tool "admin\.list": its name has a "\."/);
  assert.match(warned[1], /^tool "listed": its input schema has an array without an "items" schema at a/);
});

test("an argument that zod marks is sent in a header", async () => {
  const app = new Server("t");
  const input = z.object({ region: z.string().meta({ "x-mcp-header": "Region" }), text: z.string() });
  app.tool("where", { input }, ({ region, text }) => `${text} in ${region}`);
  const { tools } = await ask(app, "tools/list");
  assert.equal(tools[0].inputSchema.properties.region["x-mcp-header"], "Region");
  const call = async (header) => {
    const request = new Request("http://localhost/mcp", {
      method: "POST",
      headers: {
        "content-type": "application/json", accept: "application/json", "mcp-protocol-version": "2026-07-28",
        "mcp-method": "tools/call", "mcp-name": "where", ...(header && { "mcp-param-region": header }),
      },
      body: JSON.stringify({
        jsonrpc: "2.0", id: 1, method: "tools/call",
        params: { name: "where", arguments: { region: "eu", text: "here" }, _meta: META },
      }),
    });
    return (await app.fetch(request)).json();
  };
  assert.equal((await call("eu")).result.content[0].text, "here in eu");
  assert.equal((await call("us")).error.code, -32020);
  assert.equal((await call(undefined)).error.code, -32020);
  await app.close();
});

test("a completion of a mounted server's is its template's, whose URI needs no slashes", async () => {
  const [app, shelf] = [new Server("house"), new Server("shelf")];
  const refs = [];
  app.middleware(async ({ params }, next) => (refs.push(params.ref), next()), { on: "completion/complete" });
  shelf.resource("urn:page:{number}", {}, ({ number }) => number);
  shelf.complete("urn:page:{number}", "number", (prefix) => [`${prefix}?`]);
  app.mount("shelf", shelf);
  const client = await Client.connect(app);
  assert.deepEqual((await client.complete("urn:page:{number}", "number", "1")).values, ["1?"]);
  assert.deepEqual(refs, [{ type: "ref/resource", uri: "urn:page:{number}" }]);
  await client.close();
});
