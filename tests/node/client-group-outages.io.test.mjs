// Groups whose servers are away for a while, or never start.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { AuthError, ClientGroup, ConnectFailed, Server } from "gudgeon";

import { eventually } from "./http.mjs";

function shelf(name) {
  const app = new Server(name);
  app.tool("who", {}, () => name);
  app.resource(`${name}://about`, { name: "about" }, () => name);
  return app;
}

/** Returns a URL at which nothing listens. Systems give the ports from 32768 on to programs that ask for any. */
async function freeUrl() {
  for (;;) {
    const port = 10_000 + Math.floor(Math.random() * 22_000);
    const tried = createServer().listen(port, "127.0.0.1");
    const free = await once(tried, "listening").then(
      () => true,
      () => false,
    );
    await new Promise((resolve) => tried.close(resolve));
    if (free) return `http://127.0.0.1:${port}/mcp`;
  }
}

const names = async (group) => (await group.listTools()).map(({ name }) => name);

test("a server that starts later joins the group", async () => {
  const at = await freeUrl();
  const reached = [];
  const options = { retry: "never", onReconnect: ({ attempt, reason, server }) => reached.push([attempt > 1, reason instanceof ConnectFailed, server]) };
  const group = await ClientGroup.connect({ a: shelf("a"), late: at }, options);
  assert.deepEqual([...group.clients.keys()], ["a"]);
  assert.ok(group.errors.get("late") instanceof ConnectFailed);
  await assert.rejects(group.callTool("late_who"), (error) => error instanceof ConnectFailed && error.target === at);
  const listening = await shelf("late").listen(at);
  // Nothing asks for it, so that the attempt is one in the background.
  await eventually(() => group.clients.size === 2 && reached.length === 1);
  assert.equal(group.clients.get("late").server.name, "late");
  assert.deepEqual(reached, [[true, true, "late"]]);
  assert.equal(group.errors.size, 0);
  assert.deepEqual(await names(group), ["a_who", "late_who"]);
  assert.equal((await group.readResource("late://about")).text, "late");
  await group.close();
  await listening.close();
});

test("a call tries to reach its server at once", async () => {
  const at = await freeUrl();
  const group = await ClientGroup.connect({ late: at });
  const listening = await shelf("late").listen(at);
  assert.equal((await group.callTool("late_who")).text, "late");
  assert.deepEqual([...group.clients.keys()], ["late"]);
  await group.close();
  await listening.close();
});

test("a server that dies is left out of lists until it is back", async () => {
  const at = await freeUrl();
  const listening = await shelf("b").listen(at);
  const group = await ClientGroup.connect({ a: shelf("a"), b: at }, { retry: "never" });
  assert.deepEqual(await names(group), ["a_who", "b_who"]);
  await listening.close();
  assert.deepEqual(await names(group), ["a_who"]);
  assert.deepEqual([...group.errors.keys()], ["b"]);
  assert.equal((await group.callTool("a_who")).text, "a");
  const again = await shelf("b").listen(at);
  assert.deepEqual(await names(group), ["a_who", "b_who"]);
  assert.equal(group.errors.size, 0);
  await group.close();
  await again.close();
});

test("a server in this process that does not start leaves the others", async () => {
  const lifespan = () => Promise.reject(new Error("no database"));
  const errors = [];
  const logger = { debug() {}, info() {}, warn() {}, error: (...given) => errors.push(given.join(" ")) };
  const group = await ClientGroup.connect({ a: shelf("a"), failing: new Server("failing", { lifespan }) }, { logger });
  assert.deepEqual([...group.clients.keys()], ["a"]);
  await assert.rejects(group.callTool("failing_x"), (error) => error instanceof ConnectFailed && /no database/.test(error.message));
  assert.equal((await group.callTool("a_who")).text, "a");
  assert.match(errors.join(), /failing could not be started/);
  await group.close();
});

test("servers start at the same time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  const [script, here] = [join(folder, "server.mjs"), join(folder, "started")];
  mkdirSync(here);
  // Each of these servers waits for the others.
  writeFileSync(script, `
    import { readdirSync, writeFileSync } from "node:fs";
    import { Server } from ${JSON.stringify(import.meta.resolve("gudgeon"))};
    const [here, name] = process.argv.slice(2);
    writeFileSync(here + "/" + name, "");
    const end = Date.now() + 60_000;
    while (readdirSync(here).length < 3) {
      if (Date.now() > end) process.exit(1);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
    await new Server(name).run();
  `);
  const entry = (name) => [name, { command: process.execPath, args: [script, here, name] }];
  const group = await ClientGroup.connect(Object.fromEntries(["a", "b", "c"].map(entry)));
  assert.deepEqual([...group.clients.keys()], ["a", "b", "c"]);
  await group.close();
});

test("missing credentials are not tried again", async () => {
  const { createServer: createHttp } = await import("node:http");
  const asked = { 401: 0, 503: 0 };
  const server = createHttp(({ url }, response) => {
    const status = url.slice(1);
    asked[status]++;
    response.writeHead(status).end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const at = (status) => `http://127.0.0.1:${server.address().port}/${status}`;
  const group = await ClientGroup.connect({ a: at(401), away: at(503) });
  assert.ok(group.errors.get("a") instanceof AuthError);
  const before = { ...asked };
  await assert.rejects(group.callTool("a_x"), AuthError);
  // The other one is tried again and again meanwhile.
  assert.ok(await eventually(() => asked[503] >= 3 * before[503]));
  assert.equal(asked[401], before[401]);
  await group.close();
  server.close();
});

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`logs and changes name their server (${revision})`, async () => {
    const told = [];
    const options = {
      revision,
      onLog: ({ data, server }) => told.push([server, data]),
      onListChanged: (kind, server) => told.push([server, kind]),
    };
    const app = shelf("x");
    app.tool("change", {}, async (_, ctx) => {
      await ctx.info("hello");
      app.tools.disable("who");
      return "";
    });
    const group = await ClientGroup.connect({ a: shelf("a"), b: app }, options);
    await group.callTool("b_change");
    await eventually(() => told.length === 2);
    assert.deepEqual(told.sort(), [["b", "hello"], ["b", "tools"]]);
    await group.close();
  });
}
