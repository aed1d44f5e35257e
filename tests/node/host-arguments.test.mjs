/** The arguments that hosts give to `app.fetch` and `app.node`. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";

test("contexts of hosts are taken, and other arguments are a clear error", async () => {
  const app = new Server("t");
  const made = () => new Request("http://localhost/mcp", { method: "PUT" });
  for (const given of [made(), { req: { raw: made() } }, { request: made() }]) assert.equal((await app.fetch(given, () => {})).status, 405);
  for (const wrong of [undefined, {}, { req: {} }, "http://localhost/mcp"]) {
    await assert.rejects(app.fetch(wrong), { name: "TypeError", message: /app\.fetch takes a Request, or a host's context with one/ });
  }
  for (const [request, response] of [[{}, {}], [made(), {}], [{ raw: {} }, { raw: {}, hijack() {} }]]) {
    assert.throws(() => app.node(request, response), { name: "TypeError", message: /app\.node takes the request and response of node:http/ });
  }
  assert.throws(() => app.node(), { name: "TypeError", message: /app\.node is the handler itself/ });
  await app.close();
});
