// Subscriptions to changes of several servers.

import assert from "node:assert/strict";
import { test } from "node:test";
import { ClientGroup, McpError, NotSupported, Server } from "gudgeon";

function shelf(name) {
  const app = new Server(name);
  app.tool("tidy", {}, () => "ok");
  app.resource(`${name}://about`, {}, () => "two books");
  return app;
}

for (const revision of ["2025-11-25", "2026-07-28"]) {
  test(`changes name their server: ${revision}`, async () => {
    const [a, b] = [shelf("a"), shelf("b")];
    const targets = { one: a, two: b, gone: { command: "gudgeon-no-such-program" } };
    const group = await ClientGroup.connect(targets, { revision, timeoutMs: 60_000 });
    const changes = await group.subscribe({ uris: ["b://about"], tools: true }).open();
    a.notifyUpdated("a://about");
    a.tools.disable("tidy");
    assert.deepEqual((await changes.next()).value, { kind: "tools", server: "one" });
    b.notifyUpdated("b://about");
    assert.deepEqual((await changes.next()).value, { kind: "updated", uri: "b://about", server: "two" });
    await changes.return();
    assert.equal((await changes.next()).done, true);

    const some = await group.subscribe({ tools: true, server: "two" }).open();
    a.tools.enable("tidy");
    b.tools.disable("tidy");
    assert.deepEqual((await some.next()).value, { kind: "tools", server: "two" });
    const waiting = some.next();
    await group.close();
    assert.equal((await waiting).done, true);
  });
}

test("what can't be subscribed to", async () => {
  const group = await ClientGroup.connect({ a: shelf("a") });
  assert.throws(() => group.subscribe({}), { name: "TypeError", message: /nothing to subscribe to/ });
  assert.throws(() => group.subscribe({ tool: true }), { name: "TypeError", message: /unknown option 'tool'/ });
  await assert.rejects(group.subscribe({ prompts: true }).open(), (error) => error instanceof NotSupported && /prompts\.listChanged/.test(error.message));
  await assert.rejects(group.subscribe({ tools: true, server: "b" }).open(), (error) => error instanceof McpError && /no server 'b'; it has a/.test(error.message));
  await group.close();
});
