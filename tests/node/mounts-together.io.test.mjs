// Several servers in one host are each their own.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { test } from "node:test";

import { createAdaptorServer } from "@hono/node-server";
import { Client, Server } from "gudgeon";
import { Hono } from "hono";

test("several apps in one process are each their own, by fetch and by node, in every era", async (t) => {
  const apps = ["one", "two", "three"].map((name) => new Server(name).tool("name", {}, () => name));
  const hono = new Hono().all("/one/*", (context) => apps[0].fetch(context.req.raw)).all("/two/*", (context) => apps[1].fetch(context.req.raw));
  const servers = [createAdaptorServer({ fetch: hono.fetch }), createServer(apps[2].node)];
  const [first, second] = await Promise.all(
    servers.map((server) => new Promise((listens) => server.listen(0, "127.0.0.1", () => listens(`http://127.0.0.1:${server.address().port}`)))),
  );
  t.after(async () => {
    await Promise.all(apps.map((app) => app.close()));
    for (const server of servers) server.close().closeAllConnections();
  });
  const urls = { one: `${first}/one/mcp`, two: `${first}/two/mcp`, three: `${second}/mcp` };
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    const clients = await Promise.all(Object.values(urls).map((url) => Client.connect(url, { revision })));
    assert.deepEqual(clients.map((client) => client.server.name), Object.keys(urls));
    const answers = await Promise.all(clients.map((client) => client.callTool("name")));
    assert.deepEqual(answers.map((answer) => answer.text), Object.keys(urls));
    await Promise.all(clients.map((client) => client.close()));
  }
});
