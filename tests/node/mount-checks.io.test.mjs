/** Checks of arguments that take long, at servers that are mounted in a host. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";

import { eventually } from "./http.mjs";
import { CALL_HEADERS, META, withMount } from "./mounts.mjs";

for (const mount of ["node:http", "hono"]) {
  // One is checked apart because of its size, the other because of its pattern.
  for (const length of [60_000, 200_000]) {
    test(`a check of ${length} bytes that takes long does not hold up the event loop: ${mount}`, async () => {
      const app = new Server("checks");
      const text = { type: "string", pattern: "(?=.*[a-z])(?=.*[0-9]).{8}" };
      app.tool("big", { input: { type: "object", properties: { text } } }, () => "taken");
      app.tool("small", {}, () => "done");
      await withMount(mount, app, async (url, host) => {
        let read = 0;
        host.on("request", (request) => request.once("end", () => read++));
        const call = async (name, given) => {
          const params = { name, arguments: given, _meta: META };
          const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params });
          return (await fetch(url, { method: "POST", headers: { ...CALL_HEADERS, "mcp-name": name }, body })).text();
        };
        let answered = 0;
        const slow = Array.from({ length: 40 }, () => call("big", { text: "b".repeat(length) }).finally(() => answered++));
        assert.ok(await eventually(() => read === 40));
        assert.match(await call("small", {}), /done/);
        assert.ok(answered < 40, "a call waited for the checks of others");
        for (const said of await Promise.all(slow)) assert.match(said, /takes too many steps/);
      });
    });
  }
}
