/** Handlers that ask in the modern era and wait for the answers, over each transport and in a mount. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";

import { Client, Server } from "gudgeon";

import { MODERN, withServer } from "./child.mjs";
import { withMount } from "./mounts.mjs";
import { accept, boolean, deleting, firstRound, using } from "./rounds.mjs";

describe("a handler waits", () => {
  test("over stdio, and for the request that brought the answers", async () => {
    const source = `
      const app = new Server("waits");
      app.tool("waits", {}, async (_, ctx) => {
        const before = [ctx.requestId, ctx.meta.trace];
        const name = await ctx.elicit("Name?", { type: "string" });
        await ctx.progress(1);
        return [...before, name, ctx.requestId, ctx.meta.trace].join(" ");
      });
      await app.run();`;
    const meta = { ...MODERN, "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
    await withServer(source, async (child) => {
      const send = (id, rest, more) =>
        child.send({ id, method: "tools/call", params: { name: "waits", arguments: {}, ...rest, _meta: { ...meta, ...more } } });
      send(7, {}, { trace: "a" });
      const { result } = await child.reply(7);
      assert.equal(result.resultType, "input_required");
      send("8", { requestState: result.requestState, inputResponses: { "elicit-1": accept("Ada") } }, { trace: "b", progressToken: "p" });
      assert.equal((await child.reply("8")).result.content[0].text, "7 a Ada 8 b");
      assert.equal((await child.frame(({ method }) => method === "notifications/progress")).params.progressToken, "p");
      assert.equal((await child.end()).code, 0);
    });
  });

  for (const mount of ["node:http", "hono"]) {
    test(`in ${mount}`, () => {
      const { app, seen } = deleting();
      const texts = { "Sure?": true, "Why?": "so" };
      return closing(app, () => withMount(mount, app, async (url) => {
        const client = await Client.connect(url, { onElicit: ({ message }) => texts[message] });
        assert.equal((await client.callTool("deletes")).text, "true so r1 run 1");
        assert.equal(seen.runs, 1);
        await client.close();
      }));
    });
  }

  test("where the server listens", async () => {
    const { app, seen } = deleting();
    const listening = await app.listen("http://127.0.0.1:0/mcp");
    const texts = { "Sure?": true, "Why?": "so" };
    const client = await Client.connect(listening.url, { onElicit: ({ message }) => texts[message] });
    assert.equal((await client.callTool("deletes")).text, "true so r1 run 1");
    assert.equal(seen.runs, 1);
    await client.close();
    await listening.close();
  });
});

describe("a handler that has to leave is stopped", () => {
  for (const [where, serve] of [
    ["where the server listens", async (app, use) => {
      const listening = await app.listen("http://127.0.0.1:0/mcp");
      await using([listening.url], use).finally(() => listening.close());
    }],
    ["in a mount", (app, use) => closing(app, () => withMount("node:http", app, (url) => using([url], use)))],
  ]) {
    test(`when its time is over, ${where}`, () => {
      const { app, seen } = deleting({ suspendedTtlMs: 60 });
      return serve(app, async (client) => {
        const round = await firstRound(client);
        await seen.unwound;
        assert.equal(seen.ended[0].error.name, "AbortError");
        assert.deepEqual(Object.keys((await client.callToolRound("deletes", {}, round)).questions), ["elicit-2"]);
        assert.equal(seen.runs, 2);
      });
    });
  }

  test("when the server stops, and its cleanup is waited for", async () => {
    const app = new Server("cleans");
    const cleaned = [];
    app.tool("cleans", {}, async (_, ctx) => {
      try {
        return String(await ctx.elicit("Sure?", boolean));
      } finally {
        await new Promise((resolve) => setTimeout(resolve, 30));
        cleaned.push(await ctx.elicit("Still there?", boolean).catch((error) => error.name));
      }
    });
    const listening = await app.listen("http://127.0.0.1:0/mcp");
    await using([listening.url], async (client) => {
      await firstRound(client, "cleans");
      await listening.close();
      assert.deepEqual(cleaned, ["AbortError"]);
    });
  });

  test("when the client of a stream is gone", () =>
    withServer(
      `
      const app = new Server("cleans");
      app.tool("cleans", {}, async (_, ctx) => {
        try {
          return String(await ctx.elicit("Sure?", { type: "boolean" }));
        } finally {
          await new Promise((resolve) => setTimeout(resolve, 30));
          console.error("cleaned");
        }
      });
      await app.run();`,
      async (child) => {
        const _meta = { ...MODERN, "io.modelcontextprotocol/clientCapabilities": { elicitation: {} } };
        child.send({ id: 1, method: "tools/call", params: { name: "cleans", arguments: {}, _meta } });
        assert.equal((await child.reply(1)).result.resultType, "input_required");
        assert.equal((await child.end()).code, 0);
        assert.match(child.stderr, /cleaned/);
      },
    ));
});

async function closing(app, use) {
  try {
    await use();
  } finally {
    await app.close();
  }
}
