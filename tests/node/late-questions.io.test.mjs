import assert from "node:assert/strict";
import { test } from "node:test";

import { ask, Client, ConnectionLost, NotSupported, Server } from "gudgeon";

const LEGACY = "2025-11-25";

/** A client of this server over each way to it. */
async function reached(t, app, over, options) {
  if (over === "memory") return opened(t, await Client.connect(app, options));
  const listening = await app.listen(over === "tcp" ? "tcp://127.0.0.1:0" : "http://127.0.0.1:0/mcp");
  t.after(() => listening.close());
  return opened(t, await Client.connect(over + listening.url.slice(listening.url.indexOf(":")), options));
}

function opened(t, client) {
  t.after(() => client.close());
  return client;
}

for (const over of ["memory", "http", "ws", "tcp"]) {
  test(`a handler of notifications asks for the roots that changed, over ${over}`, async (t) => {
    const app = new Server("s");
    const heard = [];
    let resolveNext = () => {};
    app.onRootsChanged(async (ctx) => {
      heard.push((await ctx.roots()).map(({ uri }) => uri));
      resolveNext();
    });
    const client = await reached(t, app, over, { revision: LEGACY, roots: ["file:///a"] });
    for (const roots of [["file:///b"], ["file:///b", "file:///c"]]) {
      const next = new Promise((resolve) => (resolveNext = resolve));
      await client.setRoots(roots);
      await next;
      assert.deepEqual(heard.pop(), roots);
    }
  });

  for (const revision of [LEGACY, "2026-07-28"]) {
    test(`a question after the end of its call fails at once, over ${over} in ${revision}`, async (t) => {
      const app = new Server("s");
      let go;
      const may = new Promise((resolve) => (go = resolve));
      let late;
      app.tool("leave", {}, (_, ctx) => {
        late = may.then(() => ctx.ask(ask.elicit("Anybody?", { type: "boolean" })));
        late.catch(() => {});
        return "left";
      });
      const client = await reached(t, app, over, { revision, onElicit: () => assert.fail("nobody is to be asked") });
      assert.equal((await client.callTool("leave")).text, "left");
      go();
      await assert.rejects(late, NotSupported);
    });

    test(`who asks after its client left is stopped, over ${over} in ${revision}`, async (t) => {
      const app = new Server("s");
      const outcome = new Promise((resolve) => {
        app.tool("stays", {}, async (_, ctx) => {
          await new Promise((left) => {
            ctx.signal.addEventListener("abort", left);
            begin();
          });
          resolve(await ctx.elicit("Anybody?", { type: "boolean" }).catch((error) => error.name));
        });
      });
      let begin;
      const begun = new Promise((resolve) => (begin = resolve));
      const client = await reached(t, app, over, { revision, onElicit: () => assert.fail("nobody is to be asked") });
      const calling = assert.rejects(client.callTool("stays"), ConnectionLost);
      await begun;
      await client.close();
      await calling;
      assert.equal(await outcome, "AbortError");
    });
  }
}
