/** A handler that waits for its client: neither its time passes meanwhile nor is its place taken, in every revision. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import { Client, Server, ask } from "gudgeon";

import { waiting } from "./waiting-server.mjs";

const LEGACY = ["2025-06-18", "2025-11-25"];
const EVERY = [...LEGACY, "2026-07-28"];
const boolean = { type: "boolean" };
const PROGRAM = fileURLToPath(new URL("waiting-server.mjs", import.meta.url));

for (const revision of EVERY) {
  for (const name of ["waits", "returns"]) {
    for (const over of ["memory", "http"]) {
      test(`waiting takes neither time nor place: ${name}, ${revision}, ${over}`, { timeout: 20_000 }, async () => {
        const server = waiting();
        const here = over === "http" ? await server.listen("http://127.0.0.1:0/mcp") : undefined;
        const client = await Client.connect(here?.url ?? server, {
          revision,
          onElicit: async () => {
            // Another call of the tool runs, and more than its time goes by.
            assert.equal((await client.callTool(name, { asks: false })).text, "asked nothing");
            await assert.rejects(client.callTool("hangs"), /took longer than its 0\.9 s/);
            return true;
          },
        });
        assert.equal((await client.callTool(name, { asks: true })).text, "true");
        await client.close();
        await here?.close();
      });
    }
  }
}

for (const revision of LEGACY) {
  for (const name of ["waits", "returns"]) {
    for (const over of ["memory", "stdio"]) {
      test(`a client that never answers is waited for so long and no longer: ${name}, ${revision}, ${over}`, { timeout: 20_000 }, async () => {
        // Over stdio nothing else happens meanwhile: the timer must find the end of the time by itself.
        const at = over === "memory" ? waiting({ parkTtlMs: 900 }) : { command: process.execPath, args: [PROGRAM] };
        const client = await Client.connect(at, { revision, onElicit: () => new Promise(() => {}) });
        await assert.rejects(client.callTool(name, { asks: true }), {
          message: `tool "${name}" waited 0.9 s for its client's answer, and none came (option parkTtlMs)`,
        });
        assert.equal((await client.callTool(name, { asks: false })).text, "asked nothing");
        await client.close();
      });
    }
  }
}

for (const revision of EVERY) {
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
