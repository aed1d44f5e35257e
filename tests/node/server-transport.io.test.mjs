import assert from "node:assert/strict";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { Server, currentContext, middleware } from "gudgeon";

import { eventually } from "./http.mjs";

/** A wire in memory: what is put in is received, what the server sends is kept. */
class Wire {
  sent = [];
  isClosed = false;
  #waiting = [];
  #inbox = [];

  put(message) {
    const waiting = this.#waiting.shift();
    if (waiting) waiting(message);
    else this.#inbox.push(message);
  }

  receive() {
    return this.#inbox.length > 0 ? Promise.resolve(this.#inbox.shift()) : new Promise((resolve) => this.#waiting.push(resolve));
  }

  async send(message) {
    this.sent.push(JSON.parse(message));
  }

  async close() {
    this.isClosed = true;
  }

  async reply(id) {
    const found = await eventually(() => this.sent.find((message) => message.id === id));
    if (!found) throw new Error(`no reply to ${id}: ${JSON.stringify(this.sent)}`);
    return found;
  }
}

const INITIALIZE = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "w", version: "1" } };
const request = (id, method, params) => JSON.stringify({ jsonrpc: "2.0", id, method, params }, null, 2);

test("one server serves several wires of the user's own, each with a session of its own, under one lifespan", async () => {
  const events = [];
  const app = new Server("t", { lifespan: () => (events.push("enter"), { value: 1, close: () => void events.push("leave") }) });
  app.tool("count", {}, (_, ctx) => {
    ctx.session.set("n", (ctx.session.get("n") ?? 0) + 1);
    return ctx.session.get("n");
  });
  const wires = [new Wire(), new Wire()];
  const served = wires.map((wire) => app.serve(wire));
  for (const wire of wires) {
    wire.put(request(0, "initialize", INITIALIZE));
    wire.put(request(1, "tools/call", { name: "count" }));
    wire.put(request(2, "tools/call", { name: "count" }));
    assert.equal((await wire.reply(2)).result.content[0].text, "2");
  }
  wires[0].put(undefined);
  await served[0];
  assert.deepEqual(events, ["enter"]);
  wires[1].put(undefined);
  await served[1];
  assert.deepEqual(events, ["enter", "leave"]);
  assert.ok(wires.every((wire) => wire.isClosed));
});

test("a wire that breaks ends its own serving only", async () => {
  const app = new Server("t");
  app.tool("ok", {}, () => "ok");
  const broken = { receive: async () => { throw new Error("broken wire"); }, send: async () => {}, close: async () => {} };
  await assert.rejects(app.serve(broken), /broken wire/);
  const wire = new Wire();
  const served = app.serve(wire);
  wire.put(request(0, "initialize", INITIALIZE));
  wire.put(request(1, "tools/call", { name: "ok" }));
  assert.equal((await wire.reply(1)).result.content[0].text, "ok");
  wire.put(undefined);
  await served;
});

test("a message that is not a string ends the connection with the fix", async () => {
  for (const [given, shown] of [[7, "7"], [null, "null"], [new Uint8Array(2), "Uint8Array"], [{}, "Object"]]) {
    let isClosed = false;
    const wire = { receive: async () => given, send: async () => {}, close: async () => void (isClosed = true) };
    await assert.rejects(new Server("t").serve(wire), { name: "TypeError", message: new RegExp(`must return a string, or undefined at the end, not ${shown}`) });
    assert.ok(isClosed);
  }
});

test("errors of registration have the place and the fix", () => {
  const app = new Server("t");
  const ok = () => "ok";
  app.tool("a", {}, ok).prompt("p", {}, ok);
  const cases = [
    [() => app.tool("a", {}, ok), /tool "a".*already registered/],
    [() => app.tool("a b", {}, ok), /tool "a b".*letters/],
    [() => app.tool("b", ok), /tool "b".*\{\}/],
    [() => app.tool("b", {}), /tool "b".*function/],
    [() => app.tool("b", { input: { type: "string" } }, ok), /tool "b", input.*object/],
    [() => app.tool("b", { input: { type: "object", properties: { a: { type: "nope" } } } }, ok), /tool "b"/],
    [() => app.resource("no uri", {}, ok), /resource "no uri".*scheme/],
    [() => app.resource("a://{", {}, ok), /resource "a:\/\/\{"/],
    [() => app.complete("nobody", "x", ok), /complete "nobody".*register it first/],
    [() => app.complete("p", "x", ok), /complete "p".*no argument/],
    [() => app.method("acme/x", {}, ok), /method "acme\/x".*schema/],
    [() => app.mount("x", {}), /must be a Server of gudgeon, not {}/],
    [() => app.mount("x", app), /into itself/],
    [() => app.tools.remove("z"), /"z"/],
    [() => app.tools.update("a", { name: "c" }), /can't be changed/],
    [() => new Server(""), /name/],
    [() => new Server("t", { revisions: ["2020-01-01"] }), /2025-11-25/],
    [() => new Server("t", { revisions: "2025-11-25" }), /revisions must be a list/],
    [() => new Server("t", { pagesize: 3 }), /unknown option 'pagesize'; did you mean 'pageSize'\?$/],
    [() => new Server("t", { pageSize: 0 }), /pageSize must be an integer from 1, not 0/],
    [() => new Server("t", { pageSize: NaN }), /pageSize must be an integer/],
    [() => new Server("t", { maxMessage: -1 }), /maxMessage must be a number of bytes/],
    [() => new Server("t", { listTtlMs: -5 }), /listTtlMs must be a number of milliseconds/],
    [() => new Server("t", { schemaProfile: "small" }), /schemaProfile must be "portable" or "full"/],
    [() => new Server("t", { exposeErrors: RangeError }), /exposeErrors must be a list/],
    [() => new Server("t", { version: 7 }), /version must be a string, not 7/],
    [() => new Server("t", { lifespan: {} }), /lifespan must be a function/],
    [() => middleware.rateLimit(0), /requests a second above 0/],
    [() => middleware.rateLimit(1, { by: "moon" }), /"principal", "client" or "server"/],
    [() => currentContext(), /only in a handler/],
  ];
  for (const [act, message] of cases) assert.throws(act, message, String(message));
  assert.deepEqual([...app.tools].map((tool) => tool.name), ["a"]);
});

test("a component that needs a principal is neither listed nor called without one", async () => {
  const app = new Server("t");
  app.tool("open", {}, () => "ok");
  app.tool("secret", { visible: (principal) => principal !== undefined }, () => "secret");
  const wire = new Wire();
  const served = app.serve(wire);
  wire.put(request(0, "initialize", INITIALIZE));
  wire.put(request(1, "tools/list"));
  wire.put(request(2, "tools/call", { name: "secret" }));
  assert.deepEqual((await wire.reply(1)).result.tools.map((tool) => tool.name), ["open"]);
  assert.equal((await wire.reply(2)).error.code, -32602);
  wire.put(undefined);
  await served;
});

test("a worker thread that ends while it serves takes nothing down", async () => {
  const source = `
    import("gudgeon").then(({ Server }) => {
      const app = new Server("t");
      app.tool("ok", {}, () => "ok");
      app.serve({ receive: () => new Promise(() => {}), send: async () => {}, close: async () => {} });
      require("node:worker_threads").parentPort.postMessage("serves");
    });`;
  for (let round = 0; round < 20; round++) {
    const worker = new Worker(source, { eval: true });
    await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    await worker.terminate();
  }
});

test("a worker thread that ends while it listens takes its port with it", async () => {
  const source = `
    import("gudgeon").then(async ({ Server }) => {
      const { url } = await new Server("t").listen("http://127.0.0.1:0/mcp");
      require("node:worker_threads").parentPort.postMessage(url);
    });`;
  for (let round = 0; round < 5; round++) {
    const worker = new Worker(source, { eval: true });
    const url = await new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
    assert.equal((await fetch(url, { method: "PUT" })).status, 405);
    await worker.terminate();
    await assert.rejects(fetch(url, { method: "PUT" }));
  }
});

test("a lifespan that fails is the error of serve, and the wire is closed", async () => {
  const app = new Server("t", { lifespan: async () => { throw new Error("no database"); } });
  const wire = new Wire();
  await assert.rejects(app.serve(wire), /no database/);
  assert.ok(wire.isClosed);
});
