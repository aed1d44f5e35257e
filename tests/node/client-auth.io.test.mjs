// Clients with credentials: the option `auth`.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { inspect } from "node:util";

import { AuthError, Client, ClientGroup, Server } from "gudgeon";
import { clientCredentials, enterpriseManaged, fileStore, oauth, workloadIdentity } from "gudgeon/auth";

import { agree, Protected } from "./protected.mjs";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const OPTIONS = { revision: "2025-11-25", logger: quiet };

let server;
const folder = mkdtempSync(join(tmpdir(), "client-auth-"));
before(async () => (server = await Protected.open()));
after(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

async function call(auth) {
  const client = await Client.connect(server.url, { auth, ...OPTIONS });
  try {
    return (await client.callTool("echo")).text;
  } finally {
    await client.close();
  }
}

/** Keeps records in memory; the methods are async or not. */
function storeOf(records, isAsync) {
  const made = (value) => (isAsync ? Promise.resolve(value) : value);
  return {
    get: (key) => made(records.get(key)),
    set: (key, value) => made(void records.set(key, value)),
    delete: (key) => made(void records.delete(key)),
  };
}

test("a token, or a function that returns one, is sent", async () => {
  for (const auth of ["t0ken", () => "t0ken", async () => "t0ken"]) {
    server.sent.length = 0;
    assert.equal(await call(auth), "done");
    assert.deepEqual([...new Set(server.sent)], ["Bearer t0ken"]);
  }
  await assert.rejects(call("wr0ng"), (error) => error instanceof AuthError && !inspect(error).includes("wr0ng"));
  const fails = () => {
    throw new RangeError("s3cret");
  };
  await assert.rejects(call(fails), (error) => error instanceof AuthError && error.message.includes("RangeError") && !error.message.includes("s3cret"));
  await assert.rejects(call(() => 7), (error) => error instanceof AuthError && error.message.includes("TypeError"));
});

test("the servers of a group get the credentials too", async () => {
  const group = await ClientGroup.connect({ one: { url: server.url } }, { auth: async () => "t0ken", ...OPTIONS });
  assert.equal((await group.callTool("one_echo")).text, "done");
  await group.close();
});

test("a user signs in with the browser", async () => {
  const visit = (url) => void fetch(agree(url)).then((response) => response.text());
  assert.equal(await call(oauth({ openUrl: visit })), "done");
  assert.equal(server.forms.at(-1).grant_type, "authorization_code");
});

test("tokens are kept in a store of the program's own", async () => {
  for (const isAsync of [false, true]) {
    const records = new Map();
    const store = storeOf(records, isAsync);
    assert.equal(await call(oauth({ onRedirect: isAsync ? async (url) => agree(url) : agree, store })), "done");
    assert.equal(records.size, 2);
    for (const record of records.values()) assert.equal(JSON.parse(Buffer.from(record)).version, 1);
    const before = server.forms.length;
    // The stored token needs no user.
    assert.equal(await call(oauth({ store })), "done");
    assert.equal(server.forms.length, before);
  }
  const broken = { ...storeOf(new Map(), false), get: () => "text" };
  await assert.rejects(call(oauth({ onRedirect: agree, store: broken })), AuthError);
});

test("tokens are kept in a file that several clients share", async () => {
  const path = join(folder, "shared.json");
  assert.equal(await call(oauth({ onRedirect: agree, store: fileStore(path) })), "done");
  const before = server.forms.length;
  assert.equal(await call(oauth({ store: fileStore(pathToFileURL(path)) })), "done");
  assert.equal(server.forms.length, before);
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

test("a program reads and writes the records of a file itself", async () => {
  const path = join(folder, "deep/records.json");
  const store = fileStore(path);
  assert.equal(await store.get("a"), undefined);
  await store.set("a", Buffer.from('{"version":1}'));
  assert.equal(Buffer.from(await fileStore(path).get("a")).toString(), '{"version":1}');
  await store.delete("a");
  await store.delete("a");
  assert.equal(await store.get("a"), undefined);
  const broken = join(folder, "broken.json");
  writeFileSync(broken, '{"s3cret');
  const reported = (error) => error instanceof AuthError && error.message.includes("broken.json: is not a valid file") && !inspect(error).includes("s3cret");
  for (const act of [() => fileStore(broken).get("a"), () => fileStore(broken).set("a", Buffer.from("1")), () => fileStore(broken).delete("a")]) {
    await assert.rejects(act, reported);
  }
  await assert.rejects(store.set("a", Buffer.from("s3cret")), (error) => /not JSON/.test(error.message) && !inspect(error).includes("s3cret"));
  const { XDG_CONFIG_HOME } = process.env;
  process.env.XDG_CONFIG_HOME = folder;
  assert.equal(inspect(fileStore()).includes(join(folder, "gudgeon/tokens.json")), true);
  if (XDG_CONFIG_HOME === undefined) delete process.env.XDG_CONFIG_HOME;
  else process.env.XDG_CONFIG_HOME = XDG_CONFIG_HOME;
});

test("the error of a token names the case, the option, and what the program's own function threw", async () => {
  const refused = (text) => (error) => error instanceof AuthError && `${error.message} ${error.hint}`.includes(text);
  await assert.rejects(call("wr0ng"), refused("the server rejected the credentials"));
  await assert.rejects(call(undefined), refused('pass { auth: "TOKEN" }, or { auth: "oauth" }'));
  await assert.rejects(call("Bearer t0ken"), (error) => error instanceof TypeError && /pass the token alone/.test(error.message));
  const thrown = new RangeError("no token");
  const fails = () => { throw thrown; };
  for (const auth of [fails, oauth({ store: { get: fails, set: fails, delete: fails } })]) {
    await assert.rejects(call(auth), (error) => error instanceof AuthError && error.cause === thrown);
  }
});

const FIFTY_CALLS = `
import { Client } from "gudgeon";
import { fileStore, oauth } from "gudgeon/auth";
const onRedirect = () => { throw new Error("nobody is asked"); };
const [url, path] = process.argv.slice(1);
const client = await Client.connect(url, { auth: oauth({ store: fileStore(path), onRedirect }), revision: "2025-11-25" });
await Promise.all(Array.from({ length: 50 }, () => client.callTool("echo")));
await client.close();
`;

test("five processes renew a token once", async () => {
  const path = join(folder, "renewed.json");
  assert.equal(await call(oauth({ onRedirect: agree, store: fileStore(path) })), "done");
  const content = JSON.parse(readFileSync(path, "utf8"));
  for (const { tokens } of Object.values(content.records)) if (tokens) Object.assign(tokens, { expires_at: 1, renew_at: 1 });
  writeFileSync(path, JSON.stringify(content));
  server.token = "renewed";
  server.forms.length = 0;
  try {
    const processes = Array.from({ length: 5 }, async () => {
      const child = spawn(process.execPath, ["--input-type=module", "-e", FIFTY_CALLS, server.url, path], { cwd: new URL("../..", import.meta.url) });
      let said = "";
      child.stderr.on("data", (text) => (said += text));
      assert.equal((await once(child, "close"))[0], 0, said);
    });
    await Promise.all(processes);
    assert.deepEqual(server.forms.map((form) => form.grant_type), ["refresh_token"]);
  } finally {
    server.token = "t0ken";
  }
});

test("programs sign in by themselves", async () => {
  assert.equal(await call(clientCredentials({ clientId: "me", clientSecret: "s" })), "done");
  assert.equal(server.forms.at(-1).grant_type, "client_credentials");
  assert.equal(await call(workloadIdentity({ token: async () => "platform", clientId: "me" })), "done");
  assert.equal(server.forms.at(-1).assertion, "platform");
});

test("the requests of a sign-in go through the option fetch", async () => {
  const sent = [];
  const through = (url, init) => {
    sent.push(`${init.method} ${new URL(url).pathname}`);
    return fetch(url, init);
  };
  server.forms.length = 0;
  const client = await Client.connect(server.url, { auth: clientCredentials({ clientId: "me", clientSecret: "s" }), fetch: through, ...OPTIONS });
  assert.equal((await client.callTool("echo")).text, "done");
  await client.close();
  assert.equal(server.forms.length, 1);
  assert.ok(sent.some((request) => request.includes("/.well-known/")) && sent.includes("POST /token"), sent.join());
});

test("credentials go to the issuer that the program names", async () => {
  const ways = {
    oauth: (issuer) => oauth({ clientId: "me", clientSecret: "s", onRedirect: agree, issuer }),
    clientCredentials: (issuer) => clientCredentials({ clientId: "me", clientSecret: "s", issuer }),
    enterpriseManaged: (issuer) => enterpriseManaged({ identityToken: "i", idp: "https://idp.example.com", clientId: "me", issuer }),
    workloadIdentity: (issuer) => workloadIdentity({ token: "platform", issuer }),
  };
  server.forms.length = 0;
  for (const [name, way] of Object.entries(ways)) {
    await assert.rejects(call(way("https://as.example.com")), (error) => error instanceof AuthError && /for https:\/\/as\.example\.com, but/.test(error.message), name);
    assert.deepEqual(server.forms, []);
  }
  for (const name of ["oauth", "clientCredentials", "workloadIdentity"]) assert.equal(await call(ways[name](server.origin)), "done");
});

test("a question of the sign-in keeps the process alive until it is answered", async () => {
  const code = `
import { Client } from "gudgeon";
import { clientCredentials } from "gudgeon/auth";
const client = await Client.connect(process.argv[1], { auth: async () => (await new Promise((resolve) => setTimeout(resolve, 50).unref()), "t0ken"), revision: "2025-11-25" });
console.log((await client.callTool("echo")).text);
await client.close();
`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", code, server.url], { cwd: new URL("../..", import.meta.url) });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (text) => (said += text));
  assert.deepEqual([(await once(child, "close"))[0], said], [0, "done\n"]);
});

test("invalid credentials are refused at once", async () => {
  for (const [make, problem] of [
    [() => oauth({ clientId: "" }), /oauth\(\): clientId must be a string that is not empty, not an empty string/],
    [() => oauth({ clientId: "me", issuer: "" }), /issuer must be/],
    [() => oauth({ scopes: "a b" }), /scopes must be a list of strings; write \["a b"\]/],
    [() => oauth({ redirectPort: 70_000 }), /redirectPort must be a port/],
    [() => oauth({ openUrl: "firefox" }), /openUrl must be a function/],
    [() => oauth({ onRedirect: 7 }), /onRedirect must be a function/],
    [() => oauth({ store: { get() {} } }), /store must be fileStore\(\) or keyringStore\(\), or have the methods/],
    [() => oauth({ dpop: "yes" }), /dpop must be true or false/],
    [() => oauth({ clientid: "me" }), /unknown option 'clientid'/],
    [() => clientCredentials(), /the options must be an object, not undefined/],
    [() => workloadIdentity("s3cret"), /the options must be an object, not a string$/],
    [() => clientCredentials({ clientId: "me" }), /either clientSecret or privateKey/],
    [() => clientCredentials({ clientId: "me", clientSecret: "a", privateKey: "b" }), /either clientSecret or privateKey/],
    [() => clientCredentials({ clientSecret: "a" }), /clientId must be a string/],
    [() => enterpriseManaged({ identityToken: "", idp: "https://idp", clientId: "me" }), /identityToken must be/],
    [() => workloadIdentity({ token: 7 }), /token must be/],
    [() => workloadIdentity({ token: "t", issuer: 7 }), /issuer must be/],
    [() => fileStore(7), /fileStore\(\): the path must be/],
    [() => fileStore(new URL("https://a.example")), /fileStore\(\): the path must be/],
  ]) {
    assert.throws(make, (error) => error instanceof TypeError && problem.test(error.message), String(problem));
  }
  const place = "http://127.0.0.1:1/mcp";
  for (const [target, options, problem] of [
    [place, { auth: 7 }, /Client\.connect\(\): auth must be "oauth", a token/],
    [place, { auth: "" }, /auth must be .*, not an empty string/],
    [place, { auth: { clientSecret: "s3cret" } }, /auth must be/],
    [place, { auth: oauth({ clientSecret: "s3cret" }) }, /clientSecret is given without clientId; pass both/],
    [place, { auth: oauth({ issuer: "https://as.example" }) }, /issuer is given without clientId/],
    [place, { auth: clientCredentials({ clientId: "me", privateKey: "s3cret" }) }, /BEGIN PRIVATE KEY/],
    [place, { auth: "s3cret", headers: { authorization: "Bearer a" } }, /headers has Authorization as well/],
    ["ws://127.0.0.1:1/mcp", { auth: "s3cret" }, /not at an http or https URL/],
    [new Server("t"), { auth: "s3cret" }, /not at an http or https URL/],
  ]) {
    await assert.rejects(Client.connect(target, options), (error) => error instanceof TypeError && problem.test(error.message) && !inspect(error).includes("s3cret"), String(problem));
  }
});

test("credentials show no secrets", async () => {
  const client = await Client.connect(server.url, { auth: "t0ken", ...OPTIONS });
  for (const shown of [
    oauth({ clientId: "me", clientSecret: "t0ken" }), clientCredentials({ clientId: "me", clientSecret: "t0ken" }), workloadIdentity({ token: "t0ken" }),
    enterpriseManaged({ identityToken: "t0ken", idp: "https://idp", clientId: "me" }), client,
  ]) {
    assert.doesNotMatch(inspect(shown, { showHidden: true, depth: 9 }) + JSON.stringify(shown), /t0ken/);
  }
  await client.close();
});
