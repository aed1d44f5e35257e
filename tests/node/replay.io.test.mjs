/** A handler that asks is run again by the next process. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client } from "gudgeon";

import { able, firstRound } from "./rounds.mjs";

test("after a restart it is run again, with keys from the environment", async () => {
  const source = `
    import { Server } from "gudgeon";
    const app = new Server("again");
    app.tool("deletes", {}, async (_, ctx) => {
      try {
        const receipt = await ctx.step("charge", () => process.argv[1]);
        return String(await ctx.elicit("Sure?", { type: "boolean" })) + " " + receipt + " " + process.argv[1];
      } finally {
        console.error("unwound " + process.argv[1]);
      }
    });
    await app.run();`;
  const start = (name) =>
    Client.connect(
      { command: process.execPath, args: ["--input-type=module", "-e", source, name], env: { GUDGEON_STATE_KEYS: `${"other".repeat(7)}, ${"secret".repeat(6)}` }, cwd: new URL("../..", import.meta.url).pathname },
      able,
    );
  const before = await start("before");
  const round = await firstRound(before);
  await before.close();
  const after = await start("after");
  assert.equal((await after.callToolRound("deletes", {}, round)).text, "true before after");
  await after.close();
});
