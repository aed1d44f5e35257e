import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { request } from "node:http";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { Worker } from "node:worker_threads";

import { Client, middleware, Server } from "gudgeon";

import { eventually as eventuallyIn } from "./http.mjs";
import { CALL_HEADERS, META, withMount } from "./mounts.mjs";

/** Waits until an event has come, which takes milliseconds. */
const eventually = (what) => eventuallyIn(what, 10_000);

function recorder() {
  const events = [];
  const at = (level) => (message, detail) => void events.push({ level, message, ...detail });
  return { events, debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

/** Sends a request for another host; its status. */
function refused(url) {
  return new Promise((resolve, reject) => {
    const headers = { host: "evil.example", authorization: "Bearer a-secret", "content-type": "application/json" };
    const sent = request(url, { method: "POST", headers }, (response) => resolve(response.resume().statusCode));
    sent.on("error", reject).end("{}");
  });
}

test("a refused request is an event with fields, once for a flood", async () => {
  const logger = recorder();
  const server = await new Server("shelf", { logger }).listen("http://127.0.0.1:0/mcp");
  for (let number = 0; number < 3; number++) assert.equal(await refused(server.url), 421);
  const named = (name) => logger.events.filter(({ event }) => event === name);
  assert.ok(await eventually(() => named("http.refused").length > 0));
  await server.close();
  assert.ok(await eventually(() => named("server.stopped").length > 0));
  const [{ level, status, reason, remote, message }, ...more] = named("http.refused");
  assert.deepEqual([level, status, reason, remote, more], ["info", 421, "host", "127.0.0.1", []]);
  assert.match(message, /^gudgeon\.http: refused a request with status 421: the request is for the host "evil\.example"/);
  assert.equal(named("server.started")[0].url, server.url);
  assert.ok(!JSON.stringify(logger.events).includes("a-secret"));
});

test("middleware logs events with fields, and a logger that throws does not fail a call", async () => {
  const logger = recorder();
  const app = new Server("shelf", { logger });
  app.tool("open", {}, () => "open");
  app.middleware(middleware.logging({ params: true }), { on: "tools/call" });
  app.middleware(middleware.timing(), { on: "tools/call" });
  const client = await Client.connect(app);
  assert.equal((await client.callTool("open", {})).text, "open");
  await client.callTool("nil", {}, { throwOnError: false }).catch(() => undefined);
  // The core logs details about the second call, at any time.
  const logged = logger.events.filter(({ level }) => level !== "debug");
  const described = logged.map(({ level, event, tool, outcome }) => [level, event, tool, outcome]);
  assert.deepEqual(described, [
    ["info", "request.received", "open", undefined],
    ["info", "request.timed", "open", undefined],
    ["info", "request.done", "open", "ok"],
    ["info", "request.received", "nil", undefined],
    ["info", "request.timed", "nil", undefined],
    ["info", "request.done", "nil", "error"],
  ]);
  const [received, timed] = logged;
  assert.equal(received.message, 'tools/call open {"name":"open","arguments":{}}');
  assert.equal(timed.request_id, received.request_id);
  assert.equal(typeof timed.duration_ms, "number");
  logger.info = () => { throw new Error("disk full"); };
  assert.equal((await client.callTool("open", {})).text, "open");
  await client.close();
});

test("an exception of a handler has the fields of its event", async () => {
  const logger = recorder();
  const app = new Server("shelf", { logger });
  app.tool("crash", {}, () => { throw new RangeError("no row"); });
  const client = await Client.connect(app);
  await client.callTool("crash", {}, { throwOnError: false });
  await client.close();
  assert.ok(await eventually(() => logger.events.length > 0));
  const [{ level, event, tool, reference, message }] = logger.events;
  assert.deepEqual([level, event, tool], ["error", "call.failed", "crash"]);
  assert.ok(message.includes(`(reference ${reference})`));
});

test("with GUDGEON_LOG_FORMAT=json each line is an object", async () => {
  const program = `
    import { Server } from "gudgeon";
    const app = new Server("shelf");
    app.tool("crash", {}, () => { throw new RangeError("no row"); });
    await app.run("http://127.0.0.1:0/mcp");
  `;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], {
    env: { ...process.env, GUDGEON_LOG_FORMAT: "json" }, stdio: ["ignore", "inherit", "pipe"],
  });
  // A server that logs nothing ends as well.
  const limit = setTimeout(() => child.kill(), 20_000);
  const lines = [];
  let url = "";
  for await (const line of createInterface({ input: child.stderr })) {
    const entry = JSON.parse(line);
    lines.push(entry);
    if (entry.fields?.event === "server.started") {
      url = entry.fields.url;
      assert.equal(await refused(url), 421);
      const client = await Client.connect(url);
      await client.callTool("crash", {}, { throwOnError: false });
      await client.close();
      child.kill("SIGTERM");
    }
  }
  clearTimeout(limit);
  const named = (name) => lines.find(({ fields }) => fields?.event === name);
  assert.deepEqual([named("http.refused").level, named("http.refused").logger], ["info", "gudgeon.http"]);
  assert.match(named("call.failed").message, /no row/);
  assert.equal(named("server.stopped").fields.url, url);
});

/** Runs on a thread of its own. The core rejects its calls, also while the event loop of the server is blocked. */
const REJECTED = `
  const { workerData: { url, shared, headers, meta, calls } } = require("node:worker_threads");
  const flags = new Int32Array(shared);
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "nil", _meta: meta } });
  const reject = async () => (await (await fetch(url, { method: "POST", headers: { ...headers, "mcp-name": "nil" }, body })).json()).error.code;
  (async () => {
    const codes = new Set([await reject()]);
    Atomics.wait(flags, 0, 0);
    for (let number = 0; number < calls; number++) codes.add(await reject());
    Atomics.store(flags, 1, 1);
    Atomics.notify(flags, 1);
    require("node:worker_threads").parentPort.postMessage([...codes]);
  })();
`;

test("a logger that blocks stops nothing that the core answers, and later says how much it missed", async () => {
  const shared = new SharedArrayBuffer(8);
  const flags = new Int32Array(shared);
  const logger = recorder();
  const note = logger.debug;
  // Until the other thread has its answers.
  logger.debug = (message, detail) => {
    note(message, detail);
    Atomics.store(flags, 0, 1);
    Atomics.notify(flags, 0);
    Atomics.wait(flags, 1, 0);
  };
  const app = new Server("shelf", { logger }).tool("open", {}, () => "open");
  const server = await app.listen("http://127.0.0.1:0/mcp");
  const workerData = { url: server.url, shared, headers: CALL_HEADERS, meta: META, calls: 1_300 };
  const worker = new Worker(REJECTED, { eval: true, workerData });
  const codes = new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  assert.deepEqual(await codes, [-32602]);
  const lost = () => logger.events.find(({ message }) => message.includes("log messages were dropped"));
  assert.ok(await eventually(lost));
  const rejected = logger.events.filter(({ event }) => event === "call.rejected").length;
  assert.ok(rejected >= 1 && rejected <= 1_001, `${rejected}`);
  assert.equal(lost().dropped, 1_301 - rejected);
  const client = await Client.connect(server.url);
  assert.equal((await client.callTool("open", {})).text, "open");
  await client.close();
  await server.close();
});

for (const mount of ["express", "hono", "node:http"]) {
  test(`a logger that throws stops no call: ${mount}`, async () => {
    let thrown = 0;
    const fail = () => {
      thrown++;
      throw new Error("disk full");
    };
    const app = new Server("shelf", { logger: { debug: fail, info: fail, warn: fail, error: fail } });
    app.tool("open", {}, () => "open");
    app.tool("crash", {}, () => { throw new Error("no row"); });
    app.middleware(middleware.logging(), { on: "tools/call" });
    await withMount(mount, app, async (url) => {
      const client = await Client.connect(url);
      for (let number = 0; number < 3; number++) {
        assert.equal((await client.callTool("open", {})).text, "open");
        assert.equal((await client.callTool("crash", {}, { throwOnError: false })).isError, true);
        await assert.rejects(client.callTool("nil"), /Unknown tool/);
      }
      await client.close();
    });
    assert.ok(thrown >= 9, `${thrown}`);
  });
}
