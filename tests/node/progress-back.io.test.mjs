import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server } from "gudgeon";

for (const revision of ["2025-11-25", "2026-07-28"]) {
  for (const over of ["memory", "http"]) {
    test(`progress that decreases is dropped with a warning on stderr, over ${over} in ${revision}`, async (t) => {
      const said = t.mock.method(console, "error", () => {});
      const app = new Server("s");
      app.tool("t", {}, async (_, ctx) => {
        for (const step of [1, 3, 2, 1, 4]) await ctx.progress(step);
        return "done";
      });
      const listening = over === "http" ? await app.listen("http://127.0.0.1:0/mcp") : undefined;
      const client = await Client.connect(listening?.url ?? app, { revision });
      t.after(async () => {
        await client.close();
        await listening?.close();
      });
      const told = [];
      const result = await client.callTool("t", {}, { onProgress: ({ progress }) => told.push(progress) });
      assert.equal(result.text, "done");
      assert.deepEqual(told, [1, 3, 4]);
      const reports = said.mock.calls.map(({ arguments: [text] }) => text).filter((text) => String(text).includes("must increase"));
      assert.equal(reports.length, 1);
      assert.match(reports[0], /^the progress of tools\/call must increase, and 2 came after 3: it was dropped/);
    });
  }
}
