// The values of ctx.session in a store.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Server } from "gudgeon";

import { eventually, session } from "./http.mjs";

const logged = [];
const log = (...parts) => void logged.push(parts.map((part) => (part instanceof Error ? part.stack : String(part))).join(" "));
let folder;
let servers;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "session-values-"));
  servers = await Promise.all([shelf().listen("http://127.0.0.1:0/mcp"), shelf().listen("http://127.0.0.1:0/mcp")]);
});
after(async () => {
  for (const server of servers) await server.close();
  rmSync(folder, { recursive: true });
});

function shelf() {
  const options = { store: `sqlite:${join(folder, "store")}`, requestStateKeys: ["a key of thirty-two bytes or more"] };
  const app = new Server("shelf", { ...options, logger: { debug() {}, info() {}, warn: log, error: log } });
  app.tool("count", {}, (_, ctx) => {
    ctx.session.set("count", (ctx.session.get("count") ?? 0) + 1);
    return ctx.session.get("count");
  });
  app.tool("add", {}, async (_, ctx) => {
    const cart = ctx.session.get("cart") ?? { items: [], "__proto__ ": 1 };
    cart.items.push(2n ** 64n);
    await Promise.resolve();
    ctx.session.set("cart", cart);
    return cart.items.map(String);
  });
  app.tool("forget", {}, (_, ctx) => ctx.session.delete("cart"));
  app.tool("names", {}, (_, ctx) => [...ctx.session.keys()].sort());
  app.tool("keep", {}, (_, ctx) => void ctx.session.set("keeper", () => 1));
  app.tool("fail", {}, (_, ctx) => {
    ctx.session.set("failed", true);
    throw new Error("on purpose");
  });
  app.tool("both", {}, (_, ctx) => {
    ctx.session.set("keeper", new Map());
    throw new Error("on purpose");
  });
  return app;
}

/** A session of the first server. `call` calls a tool at one of both. */
async function opened() {
  const { headers } = await session(servers[0].url);
  return async (server, name) => {
    const body = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: {} } };
    const response = await fetch(servers[server].url, {
      method: "POST",
      headers: { ...headers, "content-type": "application/json", accept: "application/json, text/event-stream" },
      body: JSON.stringify(body),
    });
    return (await response.json()).result;
  };
}

const text = (result) => result.content.map((part) => part.text).join();

test("the values of a session are at all servers, and each session has its own", async () => {
  const [call, other] = [await opened(), await opened()];
  for (const [server, count] of [[0, "1"], [1, "2"], [1, "3"], [0, "4"]]) assert.equal(text(await call(server, "count")), count);
  assert.equal(text(await other(1, "count")), "1");
});

test("values that are changed in place are stored, integers of any size too, and removed ones are gone", async () => {
  const call = await opened();
  await call(0, "add");
  assert.deepEqual(JSON.parse(text(await call(1, "add"))), ["18446744073709551616", "18446744073709551616"]);
  await call(0, "forget");
  assert.equal(text(await call(1, "names")), "[]");
});

test("a name that is removed at one server is gone at all", async () => {
  const call = await opened();
  await call(0, "add");
  await call(1, "forget");
  for (const server of [0, 1, 0]) assert.equal(text(await call(server, "names")), "[]");
});

test("a value that has no JSON concerns its call only", async () => {
  const call = await opened();
  await call(0, "count");
  assert.ok((await call(0, "keep")).isError);
  assert.equal(text(await call(0, "names")), '["count"]');
  assert.equal(text(await call(0, "count")), "2");
});

test("what a handler that fails has changed is stored", async () => {
  const call = await opened();
  assert.ok((await call(0, "fail")).isError);
  assert.equal(text(await call(1, "names")), '["failed"]');
});

test("a value that has no JSON fails the call, with its name in the log", async () => {
  const call = await opened();
  logged.length = 0;
  assert.ok((await call(0, "keep")).isError);
  assert.ok(await eventually(() => /ctx\.session\.keeper is a function, which JSON can't represent/.test(logged.join("\n"))), logged.join());
  logged.length = 0;
  assert.match(text(await call(0, "both")), /Error/);
  assert.match(logged.join("\n"), /the values of ctx\.session are not stored:.*ctx\.session\.keeper is a Map/);
});
