// Stores of tokens in the system's keyring: `keyringStore()`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, beforeEach, test } from "node:test";
import { inspect } from "node:util";

import { AuthError, Client } from "gudgeon";
import { keyringStore, oauth } from "gudgeon/auth";

import { provide, system } from "./fake-keyring.mjs";
import { agree, Protected } from "./protected.mjs";

const FIRST = JSON.stringify(["gudgeon", "a"]);

let server;
before(async () => (server = await Protected.open()));
after(() => server.close());
beforeEach(() => system.entries.clear());

async function call(store) {
  const logger = { debug() {}, info() {}, warn() {}, error() {} };
  const client = await Client.connect(server.url, { auth: oauth({ store, onRedirect: agree }), revision: "2025-11-25", logger });
  try {
    return (await client.callTool("echo")).text;
  } finally {
    await client.close();
  }
}

test("without the package the error says what to install", async () => {
  provide(false);
  const reported = (error) => error instanceof AuthError && error.message.includes("run npm install @napi-rs/keyring, or use fileStore()");
  await assert.rejects(keyringStore().get("a"), reported);
  await assert.rejects(call(keyringStore()), reported);
  provide(true);
  assert.equal(await keyringStore().get("a"), undefined);
});

test("values of any length last", async () => {
  for (const length of [0, 1, 900, 901, 5000]) {
    const store = keyringStore("shelf");
    const value = Uint8Array.from({ length }, (_, at) => at % 256);
    await store.set("a b", new Uint8Array(5000));
    await store.set("a b", value);
    assert.deepEqual(await keyringStore("shelf").get("a b"), value);
    assert.equal(await keyringStore().get("a b"), undefined);
    // The pieces of the former value are gone.
    assert.equal(system.entries.size, Math.max(1, Math.ceil(length / 900)));
    for (const name of system.entries.keys()) assert.equal(JSON.parse(name)[0], "shelf");
    await store.delete("a b");
    await store.delete("a b");
    assert.equal(system.entries.size, 0);
  }
});

test("writes of one store do not mix", async () => {
  const store = keyringStore();
  await Promise.all(Array.from({ length: 10 }, (_, at) => store.set("a", new Uint8Array(3000).fill(at))));
  assert.deepEqual(await store.get("a"), new Uint8Array(3000).fill(9));
  assert.equal(system.entries.size, 4);
});

test("a value can be replaced while it is read", async () => {
  const store = keyringStore();
  await store.set("a", new Uint8Array(3000).fill(1));
  const former = system.entries.get(FIRST);
  await store.set("a", new Uint8Array(3000).fill(2));
  // The reader sees the former first entry, whose pieces are gone.
  const { get } = system.entries;
  let isFirst = true;
  system.entries.get = (name) => {
    if (name !== FIRST || !isFirst) return get.call(system.entries, name);
    isFirst = false;
    return former;
  };
  try {
    assert.deepEqual(await store.get("a"), new Uint8Array(3000).fill(2));
    assert.equal(isFirst, false);
  } finally {
    delete system.entries.get;
  }
});

test("an entry that is not valid is named and not shown", async () => {
  const store = keyringStore();
  for (const text of ["s3cret", "2.1.id.czNjcmV0", "1.0.id.czNjcmV0", "1.1001.id.czNjcmV0", "1.1.id.s3cret!", "1.1.id.s3cre", "1.2.id.s3cret"]) {
    system.entries.set(FIRST, text);
    await assert.rejects(store.get("a"), (error) => error instanceof AuthError && /the entry "a" is not valid; delete it/.test(error.message) && !inspect(error).includes("s3cret"));
  }
  await store.set("a", Buffer.from("good"));
  assert.equal(Buffer.from(await store.get("a")).toString(), "good");
  await assert.rejects(store.set("a", new Uint8Array(1_000_000)), /too long for a keyring; use fileStore\(\)/);
  assert.equal(Buffer.from(await store.get("a")).toString(), "good");
});

test("a keyring that fails or is missing is reported", async () => {
  system.fails = new Error("it is locked");
  await assert.rejects(keyringStore().get("a"), (error) => error instanceof AuthError && /can't be read \(it is locked\); unlock it, or use fileStore\(\)/.test(error.message));
  await assert.rejects(keyringStore().set("a", new Uint8Array(1)), /it is locked/);
  system.fails = undefined;
  system.hasKeyring = false;
  await assert.rejects(call(keyringStore()), (error) => error instanceof AuthError && /Secret Service such as GNOME Keyring or KWallet, or use fileStore\(\)/.test(error.message));
  system.hasKeyring = true;
});

test("tokens are kept in the keyring", async () => {
  assert.equal(await call(keyringStore("shelf")), "done");
  const { length } = server.forms;
  assert.equal(await call(keyringStore("shelf")), "done");
  assert.equal(server.forms.length, length);
  assert.ok([...system.entries.keys()].some((name) => JSON.parse(name)[1].startsWith("credentials ")));
});

test("the service must be a string that is not empty", () => {
  for (const service of ["", 7, null]) assert.throws(() => keyringStore(service), /keyringStore\(\): the service must be a string that is not empty/);
});

const SIGN_IN = `
import { Client } from "gudgeon";
import { keyringStore, oauth } from "gudgeon/auth";
import { entries } from "./tests/node/file-keyring.mjs";
import { agree } from "./tests/node/protected.mjs";
const store = keyringStore("shelf");
const client = await Client.connect(process.argv[1], { auth: oauth({ store, onRedirect: agree }), revision: "2025-11-25" });
await client.callTool("echo");
await client.close();
for (const [, name] of entries()) {
  // The further pieces of a value are not values.
  const found = await store.get(name).catch(() => undefined);
  const record = found && JSON.parse(new TextDecoder().decode(found));
  if (!record?.tokens) continue;
  Object.assign(record.tokens, { expires_at: 1, renew_at: 1 });
  await store.set(name, new TextEncoder().encode(JSON.stringify(record)));
}
`;
const TEN_CALLS = `
import { Client } from "gudgeon";
import { keyringStore, oauth } from "gudgeon/auth";
import "./tests/node/file-keyring.mjs";
const onRedirect = () => { throw new Error("nobody is asked"); };
const client = await Client.connect(process.argv[1], { auth: oauth({ store: keyringStore("shelf"), onRedirect }), revision: "2025-11-25" });
await Promise.all(Array.from({ length: 10 }, () => client.callTool("echo")));
await client.close();
`;

test("five processes renew a token once", async () => {
  const folder = mkdtempSync(join(tmpdir(), "keyring-"));
  const [entries, state] = [join(folder, "entries"), join(folder, "state")];
  mkdirSync(entries);
  const run = async (program) => {
    const env = { ...process.env, FILE_KEYRING: entries, XDG_STATE_HOME: state };
    const child = spawn(process.execPath, ["--input-type=module", "-e", program, server.url], { cwd: new URL("../..", import.meta.url), env });
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    assert.equal((await once(child, "close"))[0], 0, said);
  };
  try {
    await run(SIGN_IN);
    server.token = "renewed";
    server.forms.length = 0;
    await Promise.all(Array.from({ length: 5 }, () => run(TEN_CALLS)));
    assert.deepEqual(server.forms.map((form) => form.grant_type), ["refresh_token"]);
    const locks = join(state, "gudgeon/locks");
    const [lock, ...others] = readdirSync(locks);
    assert.deepEqual(others, []);
    if (process.platform !== "win32") assert.deepEqual([statSync(locks).mode & 0o777, statSync(join(locks, lock)).mode & 0o777], [0o700, 0o600]);
  } finally {
    server.token = "t0ken";
    rmSync(folder, { recursive: true });
  }
});
