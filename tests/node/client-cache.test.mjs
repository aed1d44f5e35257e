// Lists and resources that a client does not request again while they are fresh (Utilities › Caching).

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client, Server } from "gudgeon";

const ABOUT = "shelf://about";

/** Returns a server whose results are fresh for a minute, and the number of reads that it answered. */
function shelf() {
  const app = new Server("shelf", { listTtlMs: 60_000 });
  const reads = { count: 0 };
  app.resource(ABOUT, { ttlMs: 60_000 }, () => `read ${++reads.count}`);
  app.tool("tidy", {}, () => "ok");
  return { app, reads };
}

for (const [options, expected] of [
  [{}, 1],
  [{ cacheResults: true }, 1],
  [{ cacheResults: false }, 3],
  [{ revision: "2025-11-25" }, 3],
]) {
  test(`a fresh resource is not read again: ${JSON.stringify(options)}`, async () => {
    const { app, reads } = shelf();
    const client = await Client.connect(app, options);
    for (let n = 0; n < 3; n++) await client.readResource(ABOUT);
    assert.equal(reads.count, expected);
    await client.close();
  });
}

test("a change makes a client ask again", async () => {
  const { app, reads } = shelf();
  const client = await Client.connect(app);
  const changes = await client.subscribe({ uris: [ABOUT], tools: true }).open();
  assert.equal((await client.listTools()).length, 1);
  await client.readResource(ABOUT);
  app.tool("sort", {}, () => "ok");
  app.notifyUpdated(ABOUT);
  const kinds = [(await changes.next()).value.kind, (await changes.next()).value.kind];
  assert.deepEqual(kinds.toSorted(), ["tools", "updated"]);
  assert.equal((await client.listTools()).length, 2);
  await client.readResource(ABOUT);
  assert.equal(reads.count, 2);
  await client.close();
});

test("the option is a boolean", async () => {
  await assert.rejects(Client.connect(new Server("shelf"), { cacheResults: 60 }), { name: "TypeError", message: /cacheResults must be/ });
});
