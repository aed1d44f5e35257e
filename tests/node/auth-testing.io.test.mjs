// `gudgeon/testing/auth`: servers and clients against its authorization server.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import { createServer as listenAt } from "node:net";
import { test } from "node:test";
import { inspect } from "node:util";

import { AuthError, Client, Server } from "gudgeon";
import { clientCredentials, enterpriseManaged, introspection, jwt, oauth, workloadIdentity } from "gudgeon/auth";
import { AuthorizationServer, generateKey } from "gudgeon/testing/auth";

const SECRET = { client_id: "robot", client_secret: "s3cret" };
const ROBOT = { clientId: "robot", clientSecret: "s3cret" };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** Runs a test with an authorization server and an MCP server that accepts its tokens. */
async function withServers(options, use, auth = (provider) => provider.issuer) {
  const provider = await AuthorizationServer.listen(options);
  try {
    const app = new Server("shelf", { auth: auth(provider), logger: quiet });
    app.tool("who", {}, (_, ctx) => [ctx.principal.subject, ...[...ctx.principal.scopes].sort()].join(" "));
    app.tool("write", { scopes: ["write"] }, () => "written");
    const here = await app.listen("http://127.0.0.1:0/mcp");
    try {
      await use(provider, here.url);
    } finally {
      await here.close();
    }
  } finally {
    await provider.close();
  }
}

async function calling(url, auth, ...tools) {
  const client = await Client.connect(url, { auth, logger: quiet });
  try {
    const texts = [];
    for (const tool of tools) texts.push((await client.callTool(tool)).text);
    return texts;
  } finally {
    await client.close();
  }
}

const who = async (url, auth) => (await calling(url, auth, "who"))[0];

test("a user signs in and gets more scopes", async () => {
  const accepts = (provider) => jwt({ issuer: provider.issuer, scopes: ["read"] });
  await withServers({ subject: "ada", scopes: ["read", "write"] }, async (provider, url) => {
    const texts = await calling(url, oauth({ onRedirect: provider.browse }), "who", "write", "who");
    assert.deepEqual(texts, ["ada read", "written", "ada read write"]);
    const tokens = provider.requests.filter(({ path }) => path === "/token");
    assert.deepEqual(tokens.map(({ form, status }) => [form.resource, form.code, status]), [[url, "…", 200], [url, "…", 200]]);
  }, accepts);
});

test("a registered client and a document need no registration", async () => {
  const id = "https://app.example.com/client.json";
  const document = { client_id: id, redirect_uris: ["http://127.0.0.1/callback"] };
  await withServers({ clients: [{ client_id: "app" }], clientDocuments: { [id]: document }, registration: false }, async (provider, url) => {
    for (const client of [{ clientId: "app" }, { clientMetadataUrl: id }]) {
      assert.equal(await who(url, oauth({ onRedirect: provider.browse, ...client })), "user");
    }
    await assert.rejects(who(url, oauth({ onRedirect: provider.browse })), /registration/);
  });
});

test("a document is fetched from an address of the list", async () => {
  let id = "";
  const site = createServer((_, response) => response.end(JSON.stringify({ client_id: id, redirect_uris: ["http://127.0.0.1/callback"] })));
  site.listen(0, "127.0.0.1");
  await once(site, "listening");
  id = `http://127.0.0.1:${site.address().port}/client.json`;
  const provider = await AuthorizationServer.listen({ clientDocuments: [id] });
  try {
    const target = (client) => `${provider.issuer}/authorize?${new URLSearchParams({
      response_type: "code", client_id: client, code_challenge: "x".repeat(43), code_challenge_method: "S256",
      redirect_uri: "http://127.0.0.1:9/callback",
    })}`;
    assert.match(await provider.browse(target(id)), /^http:\/\/127\.0\.0\.1:9\/callback\?code=/);
    await assert.rejects(provider.browse(target(`${id}x`)), /browse\(\): .*the client is unknown/);
    await assert.rejects(provider.browse("https://elsewhere.example/authorize"), (error) => error instanceof TypeError && /not one of/.test(error.message));
  } finally {
    await provider.close();
    site.close();
  }
});

test("programs sign in", async () => {
  const { privateKey, publicKey } = generateKey();
  const platform = await AuthorizationServer.listen();
  const signer = { client_id: "signer", jwks: { keys: [publicKey] } };
  await withServers({ clients: [SECRET, signer], trustedIssuers: [platform.issuer] }, async (provider, url) => {
    assert.equal(await who(url, clientCredentials(ROBOT)), "robot");
    assert.equal(await who(url, clientCredentials({ clientId: "signer", privateKey, algorithm: "ES256" })), "signer");
    const token = () => platform.token({ subject: "build-7", audience: provider.issuer });
    assert.equal(await who(url, workloadIdentity({ token })), "build-7");
    platform.rotateKeys({ keepFormer: false });
    assert.equal(await who(url, workloadIdentity({ token })), "build-7");
  });
  await platform.close();
});

test("an organisation decides", async () => {
  const idp = await AuthorizationServer.listen({ clients: [SECRET] });
  await withServers({ clients: [SECRET], trustedIssuers: [idp.issuer] }, async (_, url) => {
    const signIn = (identityToken) => enterpriseManaged({ identityToken, idp: idp.issuer, ...ROBOT });
    assert.equal(await who(url, signIn(idp.identityToken("robot", { subject: "ada" }))), "ada");
    await assert.rejects(who(url, signIn(idp.identityToken("robot", { expiresInMs: -600_000 }))), AuthError);
  });
  await idp.close();
});

test("tokens are issued on demand", async () => {
  await withServers({}, async (provider, url) => {
    assert.equal(await who(url, provider.token({ subject: "ada", scopes: ["a", "b"], audience: url })), "ada a b");
    for (const wrong of [{ audience: "https://other.example" }, { expiresInMs: -600_000 }, { dpopKey: "thumbprint" }]) {
      await assert.rejects(who(url, provider.token({ audience: url, ...wrong })), AuthError);
    }
    const [, body] = provider.token({ claims: { groups: ["x"] }, expiresInMs: 60_000 }).split(".");
    const claims = JSON.parse(Buffer.from(body, "base64url"));
    assert.deepEqual([claims.groups, claims.exp - claims.iat], [["x"], 60]);
  });
});

for (const dpop of ["required", "nonce"]) {
  test(`tokens are bound: ${dpop}`, async () => {
    const accepts = (provider) => jwt({ issuer: provider.issuer, dpop: "required" });
    await withServers({ dpop }, async (provider, url) => {
      assert.equal(await who(url, oauth({ onRedirect: provider.browse, dpop: true })), "user");
    }, accepts);
  });
}

test("opaque tokens are introspected and revoked", async () => {
  const accepts = ({ issuer }) => introspection({ url: `${issuer}/introspect`, issuer, cacheMs: 0, ...ROBOT });
  await withServers({ tokenFormat: "opaque", clients: [SECRET] }, async (provider, url) => {
    const token = provider.token({ audience: url });
    assert.equal(await who(url, token), "user");
    provider.revokeAll();
    await assert.rejects(who(url, token), AuthError);
  }, accepts);
});

for (const [faults, reason] of [
  [{ metadataIssuer: "https://evil.example" }, /not of/],
  [{ responseIssuer: "https://evil.example" }, /another authorization server/],
  [{ noPkce: true }, /PKCE/],
  [{ metadataBytes: 1_000_000 }, /longer than/],
  [{ refuseRegistration: true }, /rejected the registration/],
  [{ errors: { token: 1 } }, /HTTP 500/],
]) {
  test(`a fault fails a sign-in: ${Object.keys(faults)}`, async () => {
    await withServers({ faults }, async (provider, url) => {
      await assert.rejects(who(url, oauth({ onRedirect: provider.browse })), (error) => error instanceof AuthError && reason.test(error.message));
      provider.setFaults();
      assert.equal(await who(url, oauth({ onRedirect: provider.browse })), "user");
    });
  });
}

test("a server may be slow, and a page may ask", async () => {
  const provider = await AuthorizationServer.listen({ clients: [{ client_id: "app" }], consent: "page", faults: { delayMs: 60_000 } });
  await assert.rejects(fetch(`${provider.issuer}/jwks`, { signal: AbortSignal.timeout(500) }), { name: "TimeoutError" });
  provider.setFaults();
  assert.equal((await fetch(`${provider.issuer}/jwks`)).status, 200);
  const query = new URLSearchParams({
    response_type: "code", client_id: "app", code_challenge: "x".repeat(43), code_challenge_method: "S256", redirect_uri: "http://127.0.0.1:9/callback",
  });
  assert.match(await (await fetch(`${provider.issuer}/authorize?${query}`)).text(), /Allow/);
  await assert.rejects(provider.browse(`${provider.issuer}/authorize?${query}`), /does not redirect/);
  await provider.close();
});

test("it listens until it is closed", async () => {
  const provider = await AuthorizationServer.listen();
  const { issuer } = provider;
  const { port } = new URL(issuer);
  await assert.rejects(AuthorizationServer.listen({ port: Number(port) }), /AuthorizationServer\.listen\(\): can't listen at 127\.0\.0\.1/);
  await provider[Symbol.asyncDispose]();
  await assert.rejects(fetch(`${issuer}/jwks`));
  assert.throws(() => provider.token(), /the authorization server is closed/);
  await provider.close();
  // The port is free again.
  const other = listenAt().listen(Number(port), "127.0.0.1");
  await once(other, "listening");
  other.close();
});

for (const [options, problem] of [
  [{ subject: "" }, /subject must be a string that is not empty/],
  [{ clients: [{ client_id: "a", secret: "s3cret" }] }, /client_secret/],
  [{ faults: { errors: { tokens: 1 } } }, /the endpoints are/],
  [{ faults: { delayMs: 700_000 } }, /delayMs is from 0 to 600 seconds/],
  [{ faults: { delay: 1 } }, /faults: unknown option 'delay'/],
  [{ clientDocuments: ["http://app.example.com/c.json"] }, /clientDocuments: /],
  [{ trustedIssuers: "https://idp.example.com" }, /trustedIssuers must be a list/],
  [{ consent: "maybe" }, /"automatic"/],
  [{ expiresInMs: 1e15 }, /expiresInMs: at most/],
  [{ tokenform: "jwt" }, /unknown option 'tokenform'/],
]) {
  test(`a wrong option is an error: ${Object.keys(options)} ${problem}`, async () => {
    const isRight = (error) => error instanceof TypeError && error.message.startsWith("AuthorizationServer.listen()") && problem.test(error.message) && !inspect(error).includes("s3cret");
    await assert.rejects(AuthorizationServer.listen(options), isRight);
  });
}
