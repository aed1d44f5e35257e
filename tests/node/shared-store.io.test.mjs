// Stores of tokens of the program's own that processes share: `lock(key)`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, beforeEach, test } from "node:test";

import { AuthError, Client } from "gudgeon";
import { oauth } from "gudgeon/auth";

import { FolderStore } from "./folder-store.mjs";
import { agree, Protected } from "./protected.mjs";

let server;
let folder;
before(async () => (server = await Protected.open()));
after(() => server.close());
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "store-"));
  server.token = "t0ken";
  const store = new FolderStore(folder);
  assert.equal(await call(store), "done");
  store.expire();
  server.token = "renewed";
  server.forms.length = 0;
});
afterEach(() => rmSync(folder, { recursive: true }));

async function call(store, logger = { debug() {}, info() {}, warn() {}, error() {} }) {
  const client = await Client.connect(server.url, { auth: oauth({ store, onRedirect: agree }), revision: "2025-11-25", logger });
  try {
    return (await client.callTool("echo")).text;
  } finally {
    await client.close();
  }
}

/** Returns a logger, and the messages that it receives. */
function recorder() {
  const logged = [];
  const log = (...parts) => void logged.push(parts.map((part) => (part instanceof Error ? part.stack : String(part))).join(" "));
  return [{ debug: log, info: log, warn: log, error: log }, logged];
}

const grants = () => server.forms.map((form) => form.grant_type);

const TEN_CALLS = `
import { Client } from "gudgeon";
import { oauth } from "gudgeon/auth";
import { FolderStore } from "./tests/node/folder-store.mjs";
const onRedirect = () => { throw new Error("nobody is asked"); };
const auth = oauth({ store: new FolderStore(process.argv[2]), onRedirect });
const client = await Client.connect(process.argv[1], { auth, revision: "2025-11-25" });
await Promise.all(Array.from({ length: 10 }, () => client.callTool("echo")));
await client.close();
`;

test("five processes renew a token once", async () => {
  const run = async () => {
    const child = spawn(process.execPath, ["--input-type=module", "-e", TEN_CALLS, server.url, folder], { cwd: new URL("../..", import.meta.url) });
    let said = "";
    child.stderr.on("data", (text) => (said += text));
    assert.equal((await once(child, "close"))[0], 0, said);
  };
  await Promise.all(Array.from({ length: 5 }, run));
  assert.deepEqual(grants(), ["refresh_token"]);
  assert.deepEqual(readdirSync(folder).filter((name) => name.endsWith(".lock")), []);
});

test("a lock is held while tokens are renewed", async () => {
  const store = new FolderStore(folder);
  const noted = [];
  store.lock = (key) => {
    noted.push(key, grants().length);
    return async () => void noted.push("released", grants().length);
  };
  assert.equal(await call(store), "done");
  assert.match(noted[0], new RegExp(server.url));
  assert.deepEqual(noted.slice(1), [0, "released", 1]);
});

test("a lock that fails, or is not a function, fails the sign-in", async () => {
  const store = new FolderStore(folder);
  const cases = [
    [async () => Promise.reject(new RangeError("the database is away")), /could not answer: RangeError/, /the database is away/],
    [() => ({}), /could not answer: TypeError/, /lock\(\) of the store must return a function that releases the lock, not an object/],
    [() => undefined, /could not answer: TypeError/, /must return a function that releases the lock, not undefined/],
  ];
  for (const [lock, expected, reason] of cases) {
    store.lock = lock;
    const [logger, logged] = recorder();
    await assert.rejects(call(store, logger), (error) => error instanceof AuthError && expected.test(error.message));
    assert.match(logged.join("\n"), reason);
  }
  assert.deepEqual(grants(), []);
});

test("a lock that can't be released is logged, and the call goes on", async () => {
  const [logger, logged] = recorder();
  const store = new FolderStore(folder);
  store.lock = () => () => Promise.reject(new Error("the database has gone"));
  assert.equal(await call(store, logger), "done");
  assert.match(logged.join("\n"), /the database has gone/);
});

test("lock must be a function", () => {
  const store = Object.assign(new FolderStore(folder), { lock: true });
  assert.throws(() => oauth({ store }), /or have the methods get, set and delete, and lock if processes share it/);
});
