/** Middleware that limits clients by their address. */
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import { test } from "node:test";

import { middleware, Server } from "gudgeon";

import { call } from "./http.mjs";

const title = { type: "object", properties: { title: { type: "string" } }, required: ["title"] };

/** Returns `fetch` for requests that come from this address. */
function fetchFrom(localAddress) {
  return (url, { body, ...options }) =>
    new Promise((resolve, reject) => {
      const sent = request(url, { ...options, localAddress }, (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve({ status: response.statusCode, headers: new Headers(response.headers), text: async () => text }));
      });
      sent.on("error", reject).end(body);
    });
}

test("rates are limited by address where there is no principal", async () => {
  const app = new Server("shelf");
  app.tool("open", { input: title }, ({ title }) => `open ${title}`);
  app.middleware(middleware.rateLimit(0.01), { on: "tools/call" });
  const server = createServer((request, response) => app.node(request, response));
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${server.address().port}/mcp`;
  const open = async (address) => (await call(url, "open", { title: "x" }, { fetching: fetchFrom(address) })).content[0].text;
  try {
    assert.equal(await open("127.0.0.1"), "open x");
    assert.match(await open("127.0.0.1"), /^too many requests/);
    assert.equal(await open("127.0.0.2"), "open x");
  } finally {
    server.close();
    await app.close();
  }
});
