import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { test } from "node:test";

import { CallTimeout, Cancelled, Client, ConnectionLost, NotSupported, Server } from "gudgeon";
import { connect, eras } from "gudgeon/testing";

import { fake } from "./fake-server.mjs";

const ABOUT = "shelf://about";

function shelf() {
  const app = new Server("shelf");
  app.tool("tidy", {}, () => "ok");
  app.resource(ABOUT, {}, () => "two books");
  app.resource("shelf://other", {}, () => "none");
  return app;
}

/** A server of 2026-07-28; `then` is what it does after the acknowledgment of the subscription `id`, to `wanted`. */
function listening(then) {
  return fake(`
    const ID = "io.modelcontextprotocol/subscriptionId";
    if (modern(message, { tools: { listChanged: true }, resources: { subscribe: true } })) return;
    const { id, method, params } = message;
    const notify = (method, params) => send({ method: "notifications/" + method, params: { _meta: { [ID]: id }, ...params } });
    if (method === "tools/call") return params.name === "die" ? process.exit(7) : answer(message, text(process.pid));
    if (method === "tools/list") return answer(message, { resultType: "complete", tools: [], ttlMs: 0, cacheScope: "private" });
    if (method !== "subscriptions/listen") return;
    const wanted = { ...params.notifications };
    const acknowledge = () => notify("subscriptions/acknowledged", { notifications: wanted });
    const update = () => notify("resources/updated", { uri: "a://b" });
    ${then}
  `);
}

async function taken(changes, count) {
  const list = [];
  while (list.length < count) list.push((await changes.next()).value);
  return list;
}

for (const era of eras) {
  for (const way of ["memory", "http"]) {
    test(`changes are received, in ${era} over ${way}`, async () => {
      const app = shelf();
      const here = await app.listen("http://127.0.0.1:0/mcp");
      const client = await Client.connect(way === "memory" ? app : here.url, { revision: era });
      const changes = client.subscribe({ uris: [ABOUT], tools: true });
      const other = client.subscribe({ uris: [ABOUT] });
      const first = [changes.next(), other.next()];
      // Both subscriptions are open when this is answered, or soon after: the change is repeated until it arrives.
      const timer = setInterval(() => (app.notifyUpdated("shelf://other"), app.notifyUpdated(ABOUT)), 20);
      for (const { value } of await Promise.all(first)) assert.deepEqual(value, { kind: "updated", uri: ABOUT });
      clearInterval(timer);
      app.tools.disable("tidy");
      for await (const change of changes) {
        if (change.kind === "updated") continue;
        assert.deepEqual(change, { kind: "tools" });
        break;
      }
      assert.deepEqual(await changes.next(), { done: true, value: undefined });
      await assert.rejects(client.subscribe({ prompts: true }).next(), (error) => error instanceof NotSupported && /prompts\.listChanged/.test(error.message));
      await client.close();
      await here.close();
    });
  }

  for (const way of ["memory", "http"]) {
    test(`every change after open() is received, in ${era} over ${way}`, async () => {
      const app = shelf();
      const here = await app.listen("http://127.0.0.1:0/mcp");
      const client = await Client.connect(way === "memory" ? app : here.url, { revision: era });
      const updates = await client.subscribe({ uris: [ABOUT] }).open();
      app.notifyUpdated(ABOUT);
      const changes = await client.subscribe({ tools: true }).open();
      assert.equal(await changes.open(), changes);
      app.tools.disable("tidy");
      assert.deepEqual((await updates.next()).value, { kind: "updated", uri: ABOUT });
      assert.deepEqual((await changes.next()).value, { kind: "tools" });
      await updates.return();
      assert.deepEqual(await (await updates.open()).next(), { done: true, value: undefined });
      await assert.rejects(client.subscribe({ prompts: true }).open(), NotSupported);
      await client.close();
      await here.close();
    });
  }

  test(`the callback for lists is called, in ${era}`, async () => {
    const app = shelf();
    const changed = [];
    let heard;
    const told = new Promise((resolve) => (heard = resolve));
    const client = await Client.connect(app, { revision: era, onListChanged: (kind) => heard(changed.push(kind)) });
    assert.equal((await client.listTools()).length, 1);
    app.tools.disable("tidy");
    await told;
    await client.ping();
    assert.deepEqual(changed, ["tools"]);
    await client.close();
  });
}

test("what waits is merged, and nothing is lost", async () => {
  const app = shelf();
  const client = await connect(app);
  const changes = client.subscribe({ uris: [ABOUT, "shelf://other"], tools: true });
  const first = changes.next();
  const timer = setInterval(() => app.notifyUpdated(ABOUT), 20);
  await first;
  clearInterval(timer);
  for (let n = 0; n < 5_000; n++) app.notifyUpdated(ABOUT);
  app.tools.disable("tidy");
  app.notifyUpdated("shelf://other");
  await client.ping();
  assert.deepEqual(await taken(changes, 3), [{ kind: "updated", uri: ABOUT }, { kind: "tools" }, { kind: "updated", uri: "shelf://other" }]);
  await client.close();
});

test("a list that changes while the event loop is busy has changed once", async () => {
  const app = shelf();
  const changed = [];
  const client = await Client.connect(app, { revision: "2025-11-25", onListChanged: (kind) => changed.push(kind) });
  await client.listTools();
  for (let n = 0; n < 1_000; n++) app.tools.disable("tidy"), app.tools.enable("tidy");
  await client.ping();
  await client.ping();
  assert.ok(changed.length >= 1 && changed.length < 1_000, `${changed.length}`);
  await client.close();
});

for (const era of ["2025-11-25", "2026-07-28"]) {
  test(`a client that is closed ends its iterations, in ${era}`, async () => {
    const client = await connect(shelf(), { revision: era });
    const changes = client.subscribe({ uris: [ABOUT] });
    const waiting = changes.next();
    await client.ping();
    await client.close();
    assert.deepEqual(await waiting, { done: true, value: undefined });
    await assert.rejects(client.subscribe({ uris: [ABOUT] }).next(), ConnectionLost);
  });
}

test("a graceful end is the end", async () => {
  const client = await Client.connect(listening(`acknowledge(); update(); answer(message, { resultType: "complete", _meta: { [ID]: id } });`));
  const heard = [];
  for await (const change of client.subscribe({ uris: ["a://b"] })) heard.push(change);
  assert.deepEqual(heard, [{ kind: "updated", uri: "a://b" }]);
  await client.close();
});

test("a subscription that the server ends fails with the reason", async () => {
  const client = await Client.connect(listening(`
    acknowledge(); update(); send({ method: "notifications/cancelled", params: { requestId: id, reason: "out of patience" } });
  `));
  const changes = client.subscribe({ uris: ["a://b"] });
  assert.deepEqual(await taken(changes, 1), [{ kind: "updated", uri: "a://b" }]);
  await assert.rejects(changes.next(), (error) => error instanceof Cancelled && /out of patience/.test(error.message));
  assert.deepEqual(await changes.next(), { done: true, value: undefined });
  await client.close();
});

test("what the server does not acknowledge is named", async () => {
  const client = await Client.connect(listening(`delete wanted.resourceSubscriptions; acknowledge();`));
  await assert.rejects(client.subscribe({ uris: ["a://b"], tools: true }).next(), (error) => {
    assert.ok(error instanceof NotSupported);
    assert.match(error.message, /when a:\/\/b is updated: it did not acknowledge/);
    return true;
  });
  await client.close();
});

test("a server that does not acknowledge is not waited for", async () => {
  const client = await Client.connect(listening(""), { timeoutMs: 500, connectTimeoutMs: 60_000 });
  await assert.rejects(client.subscribe({ uris: ["a://b"] }).next(), (error) => error instanceof CallTimeout && /not acknowledged in (0\.5 s|500 ms)/.test(error.message));
  await client.close();
});

test("a subscription that is left before it is open is closed", async () => {
  const client = await Client.connect(listening(`acknowledge();`));
  const changes = client.subscribe({ uris: ["a://b"] });
  const waiting = changes.next();
  await changes.return();
  assert.deepEqual(await waiting, { done: true, value: undefined });
  await client.close();
});

test("a server that is gone ends the iteration", async () => {
  const client = await Client.connect(listening(`acknowledge(); update();`));
  const changes = client.subscribe({ uris: ["a://b"] });
  await changes.next();
  const waiting = assert.rejects(changes.next(), (error) => error instanceof ConnectionLost && /status 7/.test(error.message));
  await assert.rejects(client.callTool("die"), ConnectionLost);
  await waiting;
  await client.close();
});

test("a server that is started again is subscribed to again", async () => {
  const client = await Client.connect({ ...listening(`acknowledge(); update();`), restart: true });
  const before = (await client.callTool("pid")).text;
  await assert.rejects(client.callTool("die"), ConnectionLost);
  // It is started again for this.
  const changes = client.subscribe({ uris: ["a://b"], tools: true });
  assert.deepEqual(await taken(changes, 1), [{ kind: "updated", uri: "a://b" }]);
  const waiting = taken(changes, 2);
  await assert.rejects(client.callTool("die"), ConnectionLost);
  const heard = await waiting;
  assert.deepEqual(new Set(heard.map((change) => change.kind)), new Set(["tools", "updated"]));
  assert.notEqual((await client.callTool("pid")).text, before);
  await changes.return();
  await client.close();
});

test("a server that ends again and again is given up", async () => {
  const client = await Client.connect({ ...listening(`acknowledge(); process.stdout.write("", () => process.exit(7));`), restart: true });
  const iterate = async () => {
    for await (const _ of client.subscribe({ uris: ["a://b"] }));
  };
  const end = sleep(60_000, "too late", { ref: false });
  await assert.rejects(Promise.race([iterate(), end]), ConnectionLost);
  await client.close();
});
