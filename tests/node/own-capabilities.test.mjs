/** Extensions and experimental capabilities of a program's own, which the other side reads (spec: Capabilities; SEP-2133, "Negotiation"). */
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { connect, eras } from "gudgeon/testing";
import * as z from "zod";

import { closing } from "./closing.mjs";

const search = "com.example/search";

for (const revision of eras) {
  test(`each side reads the other's, ${revision}`, () => {
    const app = new Server("shelf", { extensions: { [search]: { depth: 2 } }, experimental: { ranks: {} } });
    app.method("com.example/search/find", { params: z.object({}) }, (_, ctx) => {
      assert.deepEqual(ctx.clientCapabilities, ctx.client.capabilities);
      return { found: ctx.clientCapabilities };
    });
    const own = { extensions: { [search]: { width: 3 } }, experimental: { drafts: {} } };
    return closing(connect(app, { revision, ...own }), async (client) => {
      assert.deepEqual(client.server.capabilities, client.capabilities);
      assert.deepEqual(client.server.capabilities.extensions, { [search]: { depth: 2 } });
      assert.deepEqual(client.capabilities.experimental, { ranks: {} });
      assert.equal(client.server.name, "shelf");
      const { found } = await client.request("com.example/search/find", {});
      assert.deepEqual({ extensions: found.extensions, experimental: found.experimental }, own);
    });
  });
}

test("a server declares those of its mounted servers", async () => {
  const town = new Server("town", { extensions: { "com.example/maps": {} } });
  const house = new Server("house");
  town.mount(house, "house");
  house.mount(new Server("shelf", { extensions: { [search]: {} } }), "shelf");
  await closing(connect(town), (client) => {
    assert.deepEqual(client.capabilities.extensions, { "com.example/maps": {}, [search]: {} });
  });
  assert.throws(() => town.mount(new Server("other", { extensions: { [search]: { depth: 1 } } }), "other"), /"other" can't be mounted into "town": both declare "com\.example\/search"/);
});

test("wrong names and settings are refused", async () => {
  for (const [options, reason] of [
    [{ extensions: ["search"] }, /extensions must be an object of objects/],
    [{ extensions: { search: {} } }, /extensions: "search" is not the name of an extension/],
    [{ extensions: { [search]: true } }, /extensions: the settings of "com\.example\/search" must be an object/],
    [{ experimental: { ranks: null } }, /experimental: the settings of "ranks" must be an object/],
  ]) {
    assert.throws(() => new Server("shelf", options), reason);
    await assert.rejects(connect(new Server("shelf"), options), reason);
  }
});
