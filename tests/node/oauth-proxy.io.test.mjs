// A server with an OAuth proxy: its documents, the registration of clients, and mistakes.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { jwt, apiKeys, oauthProxy, providers } from "gudgeon/auth";

const APP = { clientId: "shelf", clientSecret: "s3cret" };

async function registered(post) {
  const response = await post({ redirect_uris: ["http://127.0.0.1/callback"], token_endpoint_auth_method: "none", client_name: "Reader" });
  assert.equal(response.status, 201);
  assert.equal(response.headers.get("access-control-allow-origin"), "*");
  return (await response.json()).client_id;
}

function asked(clientId) {
  return new URLSearchParams({
    response_type: "code", client_id: clientId, redirect_uri: "http://127.0.0.1:4711/callback", state: "s",
    code_challenge: "x".repeat(43), code_challenge_method: "S256",
  });
}

for (const kind of ["native", "fetch"]) {
  test(`${kind}: a client finds the proxy, registers, and its user is asked`, async () => {
    const app = new Server("shelf", { auth: oauthProxy("https://login.example.com", APP) });
    const listening = kind === "native" ? await app.listen("http://127.0.0.1:0/mcp") : undefined;
    const root = listening ? new URL(listening.url).origin : "http://127.0.0.1:3000";
    const request = (path, options) => {
      const url = `${root}${path}`;
      return listening ? fetch(url, options) : app.fetch(new Request(url, { ...options, headers: { host: "127.0.0.1:3000", ...options?.headers } }));
    };
    const refused = await request("/mcp", { method: "POST", body: "{}", headers: { "content-type": "application/json", accept: "application/json" } });
    assert.equal(refused.status, 401);
    const resource = await (await request("/.well-known/oauth-protected-resource/mcp")).json();
    assert.deepEqual(resource.authorization_servers, [`${root}/mcp`]);
    const metadata = await (await request("/.well-known/oauth-authorization-server/mcp")).json();
    assert.equal(metadata.issuer, `${root}/mcp`);
    assert.equal(metadata.token_endpoint, `${root}/mcp/oauth/token`);
    const id = await registered((body) =>
      request("/mcp/oauth/register", { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    );
    const page = await request(`/mcp/oauth/authorize?${asked(id)}`);
    assert.equal(page.status, 200);
    assert.match(page.headers.get("set-cookie"), /HttpOnly/);
    const text = await page.text();
    assert.match(text, /<b>Reader<\/b> wants to use/);
    assert.match(text, /login\.example\.com/);
    await listening?.close();
  });
}

test("a mistake is named with its fix, and no secret is shown", () => {
  for (const [make, reason] of [
    [() => oauthProxy("http://login.example.com", APP), /use https/],
    [() => oauthProxy("https://login.example.com", {}), /clientId must be a string/],
    [() => oauthProxy("https://login.example.com", { ...APP, more: 1 }), /more/],
    [() => oauthProxy(7, APP), /URL of an issuer/],
    [() => oauthProxy(apiKeys({ a: "b" }), APP), /with one/],
    [() => oauthProxy("https://login.example.com", { ...APP, allowedRedirects: ["*"] }), /end of a path/],
    [() => providers.google({}), /google needs clientId/],
    [() => providers.google(), /options must be an object/],
    [() => providers.okta(APP), /okta needs domain/],
    [() => providers.entra({ ...APP, tenantId: 7 }), /tenantId must be a string/],
    [() => providers.github({ ...APP, tenant: "x" }), /has no option tenant/],
  ]) {
    assert.throws(
      () => new Server("shelf", { auth: make() }),
      (error) => reason.test(error.message) && !error.message.includes("s3cret"),
    );
  }
});

test("known providers need little", () => {
  for (const auth of [
    providers.google(APP),
    providers.entra({ ...APP, tenantId: "t" }),
    providers.discord(APP),
    providers.auth0({ domain: "a.auth0.com" }),
    oauthProxy(providers.auth0({ domain: "a.auth0.com" }), APP),
    oauthProxy(jwt({ issuer: "https://login.example.com" }), APP),
  ]) {
    assert.ok(new Server("shelf", { auth }));
    assert.ok(!JSON.stringify(auth).includes("s3cret"));
  }
});
