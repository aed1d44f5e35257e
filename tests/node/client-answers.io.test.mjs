/** A client's answers to questions, as its log tells them. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";

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
  const ran = await promisify(execFile)(process.execPath, ["--input-type=module", "-e", source], { cwd, timeout: 30_000 });
  assert.equal(ran.stdout, "The user declined: In?\n".repeat(2));
  const warning = "onElicit returned nothing for a URL, which declines it; return true once the user has agreed";
  assert.equal(ran.stderr.split(warning).length, 2, ran.stderr);
});
