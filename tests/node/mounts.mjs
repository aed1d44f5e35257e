/** Hosts that a server can be mounted in, each on a port of its own. */
import { createServer } from "node:http";

import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import fastify from "fastify";
import { Hono } from "hono";

// Express logs errors of requests otherwise.
process.env.NODE_ENV = "test";

/** The `_meta` of a request of 2026-07-28. */
export const META = {
  "io.modelcontextprotocol/protocolVersion": "2026-07-28",
  "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
  "io.modelcontextprotocol/clientCapabilities": {},
};

/** The headers of a call of a tool, but for its name. */
export const CALL_HEADERS = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2026-07-28",
  "mcp-method": "tools/call",
};

/** Each gives the URL of the endpoint, and how to stop. */
export const MOUNTS = {
  hono: (app) => listening(createAdaptorServer({ fetch: new Hono().all("/in/mcp/*", app.fetch).fetch }), "/in/mcp"),
  "node:http": (app) => listening(createServer(app.node), "/mcp"),
  express: (app) => listening(createServer(express().use("/deep/mcp", app.node)), "/deep/mcp"),
  "express with express.json()": (app) => listening(createServer(express().use(express.json()).use("/mcp", app.node)), "/mcp"),
  fastify: (app) => withFastify(app.node),
  "fastify by hand": (app) =>
    withFastify((request, reply) => {
      reply.hijack();
      app.node(Object.assign(request.raw, { body: request.body }), reply.raw);
    }),
};

async function withFastify(handler) {
  const host = fastify();
  host.all("/mcp", handler);
  await host.ready();
  await host.listen({ port: 0, host: "127.0.0.1" });
  return { url: `http://127.0.0.1:${host.server.address().port}/mcp`, server: host.server };
}

async function listening(server, path) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}${path}`, server };
}

/** Runs a test against a mounted server, which is closed in any case. */
export async function withMount(mount, app, test) {
  const { url, server } = await MOUNTS[mount](app);
  try {
    await test(url, server);
  } finally {
    await app.close();
    server.closeAllConnections();
    server.close();
  }
}
