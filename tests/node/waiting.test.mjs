/** A handler that waits for its client takes no place meanwhile, and waits no longer than it may. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Client, Server, ask } from "gudgeon";

const ERAS = ["2025-11-25", "2026-07-28"];
const boolean = { type: "boolean" };
const asks = { type: "object", properties: { asks: boolean }, required: ["asks"] };

function waiting(options) {
  const server = new Server("waits", options);
  const bounds = { input: asks, concurrency: 1 };
  server.tool("waits", bounds, async ({ asks }, ctx) => (asks ? String(await ctx.elicit("Sure?", boolean)) : "asked nothing"));
  server.tool("returns", bounds, ({ asks }, ctx) => {
    const question = ask.elicit("Sure?", boolean);
    const answer = asks ? ctx.answer(question) : "asked nothing";
    return answer === undefined ? question : String(answer);
  });
  return server;
}

for (const name of ["waits", "returns"]) {
  for (const revision of ERAS) {
    test(`waiting takes no place: ${name}, ${revision}`, { timeout: 60_000 }, async () => {
      const client = await Client.connect(waiting(), {
        revision,
        onElicit: async () => {
          assert.equal((await client.callTool(name, { asks: false })).text, "asked nothing");
          return true;
        },
      });
      assert.equal((await client.callTool(name, { asks: true })).text, "true");
      await client.close();
    });
  }

  test(`a client that never answers is waited for so long and no longer: ${name}`, { timeout: 60_000 }, async () => {
    // Nothing else happens meanwhile: the timer must find the end of the time by itself.
    const client = await Client.connect(waiting({ suspendedTtlMs: 50 }), { revision: "2025-11-25", onElicit: () => new Promise(() => {}) });
    await assert.rejects(client.callTool(name, { asks: true }), {
      message: `tool "${name}" waited 0.05 s for its client's answer, and none came (option suspendedTtlMs)`,
    });
    assert.equal((await client.callTool(name, { asks: false })).text, "asked nothing");
    await client.close();
  });
}

for (const revision of ERAS) {
  test(`a tool that must not run again returns no question: ${revision}`, async () => {
    const server = new Server("forbids");
    let runs = 0;
    server.tool("forbids", { replay: "forbid" }, () => {
      runs++;
      return ask.elicit("Sure?", boolean);
    });
    const client = await Client.connect(server, { revision, onElicit: () => true });
    await assert.rejects(client.callTool("forbids"), {
      message:
        'the handler returned a question, though its tool forbids being run again (replay="forbid"): call ctx.elicit, ' +
        'ctx.sample or ctx.roots instead, or remove replay="forbid"',
    });
    assert.equal(runs, 1);
    await client.close();
  });
}
