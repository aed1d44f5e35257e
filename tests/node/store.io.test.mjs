// new Server({ store }): servers that remember used DPoP proofs together, and checkStore().
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { createServer, request as send } from "node:http";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Client, Server } from "gudgeon";
import { jwt } from "gudgeon/auth";
import { checkStore } from "gudgeon/testing";

import { KEY_SET, token } from "./issuer.mjs";

const ISSUER = "https://as.example.com";
const URL = "https://shelf.example.com/mcp";
const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
const { crv, kty, x, y } = publicKey.export({ format: "jwk" });
const encoded = (value) => Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString("base64url");
const digest = (text) => createHash("sha256").update(text).digest("base64url");
const TOKEN = token(ISSUER, URL, { cnf: { jkt: digest(JSON.stringify({ crv, kty, x, y })) } });

/** A store that keeps the rules. */
class Memory {
  values = new Map();
  puts = [];
  #version = 0;

  get(key) {
    const found = this.values.get(key);
    return found && Date.now() < found.end ? [found.value, found.version] : undefined;
  }

  async put(key, value, { ttlMs, expect }) {
    this.puts.push({ key, ttlMs, expect });
    const current = this.get(key);
    if (expect !== "any" && expect !== (current?.[1] ?? "absent")) return "conflict";
    this.values.set(key, { value, version: ++this.#version, end: Date.now() + ttlMs });
    return this.#version;
  }

  async take(key) {
    const current = this.get(key);
    this.values.delete(key);
    return current?.[0];
  }
}

/** A store whose `put` is another function. */
class Bad extends Memory {
  put = (...given) => this.act(...given);
}

function shelf(store, logged = []) {
  const logger = { debug() {}, info() {}, warn() {}, error: (...parts) => logged.push(parts.map(String).join(" ")) };
  const auth = jwt({ issuer: ISSUER, keys: KEY_SET, audience: URL, dpop: "required" });
  return new Server("shelf", { auth, store, logger, http: { publicUrl: URL, allowedHosts: ["*"] } });
}

/** The headers of a request, with a proof of this id (RFC 9449, section 4.2). */
function credentials(id) {
  const claims = { jti: id, htm: "POST", htu: URL, iat: Math.floor(Date.now() / 1000), ath: digest(TOKEN) };
  const signed = `${encoded({ typ: "dpop+jwt", alg: "ES256", jwk: { crv, kty, x, y } })}.${encoded(claims)}`;
  const signature = sign("sha256", Buffer.from(signed), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return { authorization: `DPoP ${TOKEN}`, dpop: `${signed}.${signature.toString("base64url")}` };
}

/** The status, the headers and the body of the response to a ping. */
function sent(url, headers) {
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": { name: "c", version: "1" },
  };
  const usual = {
    "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-protocol-version": "2026-07-28",
    "mcp-method": "server/discover",
  };
  return new Promise((resolve, reject) => {
    const request = send(url, { method: "POST", headers: { ...usual, ...headers } }, async (response) => {
      let body = "";
      for await (const chunk of response) body += chunk;
      resolve({ status: response.statusCode, headers: response.headers, body });
    });
    request.on("error", reject).end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "server/discover", params: { _meta } }));
  });
}

async function listening(app, run) {
  const here = await app.listen("http://127.0.0.1:0/mcp");
  try {
    return await run(here.url);
  } finally {
    await here.close();
  }
}

async function mounted(app, run) {
  const server = createServer(app.node);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await run(`http://127.0.0.1:${server.address().port}/mcp`);
  } finally {
    await app.close();
    server.closeAllConnections();
    server.close();
  }
}

// RFC 9449, section 11.1: the ids of proofs, in the context of their URL.
test("a proof that one server has seen is refused by another", async () => {
  const store = new Memory();
  await listening(shelf(store), (one) =>
    mounted(shelf(store), async (other) => {
      const used = credentials("1");
      assert.equal((await sent(one, used)).status, 200);
      for (const url of [other, one]) {
        const { status, headers, body } = await sent(url, used);
        assert.equal(status, 401);
        assert.match(body, /was used before/);
        assert.match(headers["www-authenticate"], /error="invalid_dpop_proof"/);
      }
      assert.equal((await sent(other, credentials("2"))).status, 200);
    }));
  for (const { key, ttlMs, expect } of store.puts) {
    assert.match(key, /^gudgeon:dpop:/);
    assert.ok(ttlMs > 300_000 && ttlMs <= 361_000);
    assert.equal(expect, "absent");
  }
});

test("without a store each server remembers its own", async () => {
  const used = credentials("1");
  for (const store of ["memory", undefined]) {
    await listening(shelf(store), async (url) => {
      assert.deepEqual([(await sent(url, used)).status, (await sent(url, used)).status], [200, 401]);
    });
  }
});

test("a bad store refuses requests for a while", async () => {
  const store = new Bad();
  const logged = [];
  await listening(shelf(store, logged), async (url) => {
    for (const [act, reason] of [
      [() => { throw new Error("s3cret"); }, /put\(\) failed/],
      [async () => Promise.reject(new Error("s3cret")), /put\(\) failed/],
      [() => undefined, undefined],
      [() => "stored", undefined],
      [() => ({ version: 1 }), undefined],
      [() => 1n, /put\(\) failed/],
    ]) {
      store.act = act;
      logged.length = 0;
      const { status, headers, body } = await sent(url, credentials("1"));
      assert.equal(status, 503, String(act));
      assert.ok(Number(headers["retry-after"]) > 0);
      assert.doesNotMatch(body, /s3cret/);
      if (reason) assert.ok(logged.some((line) => reason.test(line)), logged.join());
    }
    store.act = Memory.prototype.put.bind(store);
    assert.equal((await sent(url, credentials("1"))).status, 200);
  });
});

test("a store that hangs refuses requests after 15 s and delays no others", async () => {
  const store = new Bad();
  store.act = () => new Promise(() => {});
  await listening(shelf(store), async (url) => {
    const hangs = sent(url, credentials("1"));
    assert.equal((await sent(url, {})).status, 401);
    const { status, headers } = await hangs;
    assert.equal(status, 503);
    assert.ok(Number(headers["retry-after"]) > 0);
  });
});

test("other values are refused with those that are allowed", () => {
  const message =
    'new Server("shelf"): store must be "memory", "redis://host:6379" (also "rediss:", "valkey:" and "valkeys:") or "sqlite:path", or an ' +
    "object with the methods get, put and take, and both or none of append and read, and of publish and subscribe, and all or none of lease, renew and release (the " +
    "interface Store)";
  for (const store of ["mysql://:s3cret@localhost", "", 7, {}, { get() {}, put() {} }, null]) {
    assert.throws(() => new Server("shelf", { store }), (error) => error instanceof TypeError && error.message === message, String(store));
  }
});

test("a store is checked", async () => {
  const memory = new Memory();
  await checkStore(memory);
  await until(() => [...memory.values.values()].every(({ end }) => Date.now() > end));
  class Keeping extends Memory {
    take = (key) => this.get(key)?.[0];
  }
  await assert.rejects(checkStore(new Keeping()), /take must remove the value/);
  class Forgetful extends Memory {
    put(key, value, { ttlMs }) {
      return super.put(key, value, { ttlMs, expect: "any" });
    }
  }
  await assert.rejects(checkStore(new Forgetful()), /put with a version must be a conflict if the key has no value/);
});

test("each store that does not keep a rule is found", async () => {
  const away = new Error("the database is away");
  class Away extends Memory {
    get() { throw away; }
  }
  const thrown = await checkStore(new Away()).catch((error) => error);
  assert.match(thrown.message, /^checkStore: get of a key without a value must return nothing; get\(\) replied \[Failed\("get\(\) threw an error"\)\]$/);
  assert.equal(thrown.cause, away);
  class Text extends Memory {
    get = (key) => super.get(key) && ["text", super.get(key)[1]];
  }
  await assert.rejects(checkStore(new Text()), /get must return the bytes and the version of put; get\(\) replied \[Failed\("get\(\) of the store must return/);
  class OneVersion extends Memory {
    get = (key) => super.get(key) && [super.get(key)[0], 1];
    put = async (...given) => ((await super.put(...given)) === "conflict" ? "conflict" : 1);
  }
  await assert.rejects(checkStore(new OneVersion()), /put with expect any must replace a value, also by an empty one; put\(\) replied \[Stored\(1\)\]/);
  class Short extends Memory {
    put = (key, value, { ttlMs, expect }) => super.put(key, value, { ttlMs: Math.min(ttlMs, 1000), expect });
  }
  await assert.rejects(checkStore(new Short()), /a value must not end before its ttl/);
  class Late extends Memory {
    // Between the look at the key and the write, others look at it too.
    put = async (key, value, { ttlMs, expect }) => {
      const current = this.get(key)?.[1] ?? "absent";
      await new Promise((resolve) => setTimeout(resolve, 5));
      return expect !== "any" && expect !== current ? "conflict" : super.put(key, value, { ttlMs, expect: "any" });
    };
  }
  await assert.rejects(checkStore(new Late()), /one of several put with expect absent must store its value; put\(\) replied \[Stored\(\d+\), Stored\(\d+\)/);
});

test("the logs, leases and messages of a store are checked", async () => {
  await checkStore(new Messages());
  class Forgetting extends Memory {
    append() { return 1; }
    read(_log, after) { return after === 0 ? [] : "gone"; }
  }
  await assert.rejects(checkStore(new Forgetting()), /append must return a number|read must return the events/);
  class Leasing extends Memory {
    lease(key, owner, { ttlMs }) { return this.put(`lease:${key}`, Buffer.from(owner), { ttlMs, expect: "any" }); }
    renew() { return "held"; }
    release(key) { return this.take(`lease:${key}`); }
  }
  await assert.rejects(checkStore(new Leasing()), /a lease must have one owner|renew must/);
  class Repeating extends Messages {
    publish(topic, message) {
      super.publish(topic, message);
      super.publish(topic, message);
    }
  }
  await assert.rejects(checkStore(new Repeating()), /^Error: checkStore: a listener must get the messages of a topic once and in their order/);
});

/** A store that carries messages between the servers of this process, once its gate is open. */
class Messages extends Memory {
  listeners = new Set();
  gate = Promise.resolve();

  publish(topic, message) {
    for (const listener of this.listeners) if (listener.topics.includes(topic)) listener.push([topic, message]);
  }

  async *subscribe(topics, { signal }) {
    await this.gate;
    const waiting = [];
    let wake = () => {};
    const listener = { topics, push: (item) => (waiting.push(item), wake()) };
    signal.addEventListener("abort", () => wake());
    this.listeners.add(listener);
    try {
      yield undefined;
      while (!signal.aborted) {
        const item = waiting.shift();
        if (item instanceof Error) throw item;
        if (item) yield item;
        else await new Promise((resolve) => (wake = resolve));
      }
    } finally {
      this.listeners.delete(listener);
    }
  }
}

function house(store, logged = []) {
  const write = (...parts) => void logged.push(parts.map(String).join(" "));
  const logger = { debug() {}, info() {}, warn: write, error: write };
  const app = new Server("house", { store, logger, requestStateKeys: ["k".repeat(32)], http: { allowedHosts: ["*"] } });
  app.tool("open", {}, () => "ok");
  app.resource("house://about", {}, () => "about");
  return app;
}

async function until(condition) {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test("changes reach the clients of another server, and all count as changed after a break", async () => {
  const store = new Messages();
  let open;
  const close = () => (store.gate = new Promise((resolve) => (open = resolve)));
  close();
  const logged = [];
  const one = house(store, logged);
  await listening(one, async () => {
    await mounted(house(store, logged), async (url) => {
      const client = await Client.connect(url);
      const changes = await client.subscribe({ uris: ["house://about"], tools: true }).open();
      const next = async () => (await changes.next()).value.kind;
      const everything = async () => assert.deepEqual([await next(), await next()].toSorted(), ["tools", "updated"]);
      const passes = async () => {
        await until(() => store.listeners.size === 2);
        one.notifyUpdated("house://about");
        assert.equal(await next(), "updated");
      };
      open();
      await everything();
      await passes();
      close();
      for (const listener of store.listeners) listener.push(new Error("the database is gone"));
      await until(() => store.listeners.size === 0);
      open();
      await everything();
      await passes();
      await client.close();
    });
  });
  await until(() => store.listeners.size === 0);
  assert.ok(logged.some((line) => line.includes("store: subscribe() failed; it is called again until it works")), logged.join("\n"));
});

test("a store without messages is logged at the start", async () => {
  const [without, withMessages] = [[], []];
  const text = "the store carries no messages, so clients hear only of changes that this process reports";
  await listening(house(new Memory(), without), () => until(() => without.some((line) => line.includes(text))));
  await listening(house(new Messages(), withMessages), async () => {});
  assert.deepEqual(withMessages, []);
});

test("an address that is none is refused, without showing it", () => {
  for (const [store, reason] of [
    ["postgres://ada:s3cret@localhost", /must be "memory", "redis:\/\/host:6379".* or "sqlite:path"/],
    ["redis://ada:s3cret@localhost:99999", /the URL of the store is not like redis:\/\//],
    ["sqlite:/missing/folder/store.db", /its folder does not exist; create it first/],
  ]) {
    assert.throws(() => new Server("shelf", { store }), (error) => reason.test(error.message) && !error.message.includes("s3cret"));
  }
  assert.throws(() => new Server("shelf", { store: { get() {}, put() {}, take() {}, append() {} } }), /both or none of append and read/);
});

test("servers with one file accept a proof once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
  try {
    const store = `sqlite:${join(folder, "store.db")}`;
    const used = credentials("file");
    const statuses = [];
    for (const app of [shelf(store), shelf(store)]) {
      await listening(app, async (url) => statuses.push((await sent(url, used)).status));
    }
    assert.deepEqual(statuses, [200, 401]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
