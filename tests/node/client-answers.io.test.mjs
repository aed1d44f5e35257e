/** A client's answers to questions: how long it waits for them, and what its log tells. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

import { Client, Server } from "gudgeon";

import { closing } from "./closing.mjs";
import { withEnoughTime } from "./enough-time.mjs";

// A process of its own: the log says it once a process.
test("nothing for a URL declines and is logged once", async () => {
  const source = `
    import { Client, Server } from "gudgeon";
    const app = new Server("t");
    app.tool("visit", {}, (_, ctx) => ctx.elicitUrl("In?", "https://a.example/in"));
    const client = await Client.connect(app, { onElicit: () => undefined });
    for (let n = 0; n < 2; n++) console.log((await client.callTool("visit", {}, { throwOnError: false })).text);
    await client.close();`;
  const cwd = new URL("../..", import.meta.url);
  const ran = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], { cwd, timeout: 60_000 });
  assert.equal(ran.stdout, "The user declined: In?\n".repeat(2));
  const warning = "onElicit returned nothing for a URL, which declines it; return true once the user has agreed";
  assert.equal(ran.stderr.split(warning).length, 2, ran.stderr);
});

test("a user who takes longer than the timeout is waited for", () =>
  withEnoughTime((timeoutMs) => {
    const app = new Server("asks");
    app.tool("name", {}, async (_, ctx) => await ctx.elicit("Name?", { type: "string" }));
    const onElicit = () => new Promise((resolve) => setTimeout(resolve, 1.2 * timeoutMs, "E"));
    return closing(Client.connect(app, { onElicit, timeoutMs }), async (client) => {
      assert.equal((await client.callTool("name")).text, "E");
    });
  }),
);
