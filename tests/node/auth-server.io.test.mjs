// new Server({ auth }): who may call, at an address and mounted in a host.
import assert from "node:assert/strict";
import { mkdtempSync, renameSync, writeFileSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { inspect } from "node:util";
import v8 from "node:v8";

import { createAdaptorServer } from "@hono/node-server";
import express from "express";
import { Hono } from "hono";

import { AuthError, Client, McpError, Server } from "gudgeon";
import { apiKeys, InsufficientScope, introspection, InvalidToken, jwt } from "gudgeon/auth";

import { eventually } from "./http.mjs";
import { KEY_SET, token, withIssuer } from "./issuer.mjs";

const quiet = { debug() {}, info() {}, warn() {}, error() {} };
const principal = (subject, ...scopes) => ({ subject, scopes: new Set(scopes), claims: {} });
const bearer = (text) => ({ authorization: `Bearer ${text}` });

/** Each gives the URL of the endpoint, and how to stop. */
const PLACES = {
  async listen(app) {
    const listening = await app.listen("http://127.0.0.1:0/mcp");
    return { url: listening.url, stop: () => listening.close() };
  },
  "node:http": (app) => hosted(createServer(app.node), "/mcp", app),
  // Express removes the prefix from the URL.
  express: (app) => hosted(createServer(express().use("/sub", app.node)), "/sub/mcp", app),
  fetch: (app) => hosted(createAdaptorServer({ fetch: new Hono().all("*", (context) => app.fetch(context.req.raw)).fetch }), "/mcp", app),
};

async function hosted(server, path, app) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = async () => {
    await app.close();
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${server.address().port}${path}`, stop };
}

async function at(place, app, test) {
  const { url, stop } = await PLACES[place](app);
  try {
    await test(url);
  } finally {
    await stop();
  }
}

function shelf(auth, options = {}) {
  const app = new Server("shelf", { auth, logger: quiet, ...options });
  app.tool("who", {}, (_, ctx) => [ctx.principal.subject, ...[...ctx.principal.scopes].sort()].join(" "));
  return app;
}

async function who(url, headers, options = {}) {
  const client = await Client.connect(url, { headers, ...options });
  try {
    return (await client.callTool("who")).text;
  } finally {
    await client.close();
  }
}

/** The status and the challenge of a request that is refused. */
function refused(url, headers = {}) {
  return new Promise((resolve, reject) => {
    const request = send(url, { method: "POST", headers: { "content-type": "application/json", ...headers } }, (response) => {
      response.resume();
      resolve([response.statusCode, response.headers["www-authenticate"] ?? ""]);
    });
    request.on("error", reject).end("{}");
  });
}

for (const place of Object.keys(PLACES)) {
  test(`${place}: the tokens of an issuer are accepted`, () =>
    withIssuer((issuer) =>
      at(place, shelf(jwt({ issuer, scopes: ["books"] })), async (url) => {
        const metadata = url.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        assert.deepEqual(await refused(url), [401, `Bearer resource_metadata="${metadata}", scope="books"`]);
        const document = await (await fetch(metadata)).json();
        assert.equal(document.resource, url);
        assert.deepEqual(document.authorization_servers, [issuer]);
        for (const revision of ["2025-11-25", "2026-07-28"]) {
          assert.equal(await who(url, bearer(token(issuer, url, { scope: "books" })), { revision }), "ada books");
        }
        for (const [changes, reason] of [[{ aud: "https://other.example" }, "audience"], [{ exp: 1 }, "expired"]]) {
          const [status, challenge] = await refused(url, bearer(token(issuer, url, { scope: "books", ...changes })));
          assert.equal(status, 401);
          assert.match(challenge, new RegExp(`error="invalid_token".*${reason}`));
        }
        const [status, challenge] = await refused(url, bearer(token(issuer, url)));
        assert.equal(status, 403);
        assert.match(challenge, /^Bearer error="insufficient_scope", scope="books"/);
      }),
    ));

  test(`${place}: API keys come in a header of their own`, async () => {
    const keys = apiKeys({ s3cret: "ada", [`sha256:${"0".repeat(64)}`]: principal("bob") }, { header: "X-Api-Key" });
    await at(place, shelf(keys), async (url) => {
      assert.equal(await who(url, { "x-api-key": "s3cret" }), "ada");
      assert.equal((await refused(url, { "x-api-key": "other" }))[0], 401);
      assert.equal((await refused(url, bearer("s3cret")))[0], 401);
      await assert.rejects(who(url), AuthError);
    });
  });

  test(`${place}: a file of API keys is read again when it changes`, async () => {
    const folder = mkdtempSync(join(tmpdir(), "gudgeon-keys-"));
    const path = join(folder, "keys.json");
    writeFileSync(path, '{"old": "ada"}');
    await at(place, shelf(apiKeys(path)), async (url) => {
      assert.equal(await who(url, bearer("old")), "ada");
      writeFileSync(join(folder, "new"), '{"new": {"subject": "bob"}}');
      renameSync(join(folder, "new"), path);
      assert.ok(await eventually(() => who(url, bearer("new")).then((name) => name === "bob", () => false)));
      assert.equal((await refused(url, bearer("old")))[0], 401);
    });
  });

  for (const isAsync of [false, true]) {
    test(`${place}: ${isAsync ? "an async" : "a"} function decides, and its failure refuses`, async () => {
      const seen = [];
      const decide = (text, request) => {
        seen.push(request);
        if (text === "blocked") throw new InvalidToken("it is blocked");
        if (text === "narrow") throw new InsufficientScope(["books"]);
        if (text === "fails") throw new Error("s3cret");
        if (text === "wrong") return "ada";
        if (text === "nameless") return { subject: 7 };
        return text === "good" ? principal("ada", "a") : undefined;
      };
      const later = async (text, request) => {
        await turn();
        return decide(text, request);
      };
      const logged = [];
      const logger = { ...quiet, error: (message, detail) => logged.push(`${message} ${detail}`) };
      await at(place, shelf(isAsync ? later : decide, { logger }), async (url) => {
        assert.equal(await who(url, bearer("good")), "ada a");
        const [{ method, path, headers, client }] = seen;
        assert.deepEqual([method, path, headers.get("Authorization")], ["POST", new URL(url).pathname, "Bearer good"]);
        assert.equal(headers.get("gudgeon-request"), null);
        if (place !== "fetch") assert.match(client, /127\.0\.0\.1$/);
        assert.doesNotMatch(inspect(seen[0]) + JSON.stringify(seen[0]), /Bearer/);
        for (const [text, status, challenge] of [
          ["unknown", 401, 'error="invalid_token"'], ["blocked", 401, "it is blocked"], ["narrow", 403, 'scope="books"'], ["fails", 500, ""],
          ["wrong", 500, ""], ["nameless", 500, ""],
        ]) {
          const answer = await refused(url, bearer(text));
          assert.equal(answer[0], status, text);
          assert.ok(answer[1].includes(challenge), `${text}: ${answer[1]}`);
        }
        assert.equal((await refused(url))[0], 401);
        const said = logged.filter((line) => line.includes("a function that verifies tokens failed"));
        assert.equal(said.length, 3);
        assert.match(said[1], /auth returned a string; return a principal such as/);
        assert.match(said[2], /the principal is invalid: .*integer `7`/);
      });
    });
  }

  test(`${place}: a component needs scopes`, async () => {
    const keys = apiKeys({ a: principal("ada"), b: principal("bob", "admin") });
    const app = shelf(keys, { scopeImplies: { admin: ["books:read", "books:write"] } });
    const scopes = ["books:read", "books:write"];
    app.tool("write", { scopes }, () => "written");
    app.resource("shelf://secret", { scopes }, () => "secret");
    app.prompt("plan", { scopes }, () => "plan");
    await at(place, app, async (url) => {
      const bob = await Client.connect(url, { headers: bearer("b") });
      assert.equal((await bob.callTool("write")).text, "written");
      assert.equal((await bob.readResource("shelf://secret")).text, "secret");
      assert.equal((await bob.getPrompt("plan")).messages[0].text, "plan");
      await bob.close();
      const ada = await Client.connect(url, { headers: bearer("a") });
      assert.equal((await ada.callTool("who")).text, "ada");
      for (const act of [() => ada.callTool("write"), () => ada.readResource("shelf://secret"), () => ada.getPrompt("plan")]) {
        await assert.rejects(act, (error) => error instanceof McpError && error.message.includes("books:read books:write"));
      }
      await ada.close();
    });
  });
}

test("a server may hide what a caller has no scopes for", async () => {
  const keys = apiKeys({ a: principal("ada"), b: principal("bob", "books") });
  const app = shelf(keys, { hideUnauthorized: true });
  app.tool("write", { scopes: ["books"] }, () => "written");
  await at("listen", app, async (url) => {
    for (const [key, names] of [["a", ["who"]], ["b", ["who", "write"]]]) {
      const client = await Client.connect(url, { headers: bearer(key) });
      assert.deepEqual((await client.listTools()).map((tool) => tool.name), names);
      if (key === "a") await assert.rejects(client.callTool("write"), /Unknown tool: write/);
      await client.close();
    }
  });
});

test("an issuer alone is enough, also over WebSocket", () =>
  withIssuer((issuer) =>
    at("listen", shelf(issuer), async (url) => {
      assert.equal(await who(url, bearer(token(issuer, url))), "ada");
      const socket = url.replace("http:", "ws:");
      assert.equal(await who(socket, bearer(token(issuer, url))), "ada");
      await assert.rejects(who(socket), AuthError);
    }),
  ));

test("keys are given, scopes imply others, and each caller sees what is for it", async () => {
  const issuer = "https://as.example.com";
  const app = shelf(jwt({ issuer, keys: KEY_SET, scopes: ["read"], leewayMs: 1_000, algorithms: ["ES256"], dpop: false }), {
    scopeImplies: { write: ["read"] },
  });
  app.tool("hidden", { visible: (who) => who?.claims.team === 7 }, (_, ctx) => ctx.principal.clientId);
  await at("listen", app, async (url) => {
    assert.equal(await who(url, bearer(token(issuer, url, { scope: "write" }))), "ada write");
    const now = Math.floor(Date.now() / 1000);
    assert.equal((await refused(url, bearer(token(issuer, url, { scope: "read", exp: now - 5 }))))[0], 401);
    for (const [team, names] of [[7, ["who", "hidden"]], [8, ["who"]]]) {
      const client = await Client.connect(url, { headers: bearer(token(issuer, url, { scope: "read", team, client_id: "desk" })) });
      assert.deepEqual((await client.listTools()).map(({ name }) => name), names);
      if (team === 7) assert.equal((await client.callTool("hidden")).text, "desk");
      await client.close();
    }
  });
});

test("tokens are introspected, and one method after the other is asked", () => {
  const forms = [];
  const answer = (path, body) => {
    if (path !== "/introspect") return undefined;
    forms.push(new URLSearchParams(body).get("token"));
    return { active: forms.at(-1) === "opaque", sub: "eve", scope: "books" };
  };
  return withIssuer(async (issuer) => {
    const opaque = introspection({ url: `${issuer}/introspect`, clientId: "me", clientSecret: "s3cret", cacheMs: 60_000 });
    const app = shelf([apiKeys({ k: "robot" }, { header: "X-Api-Key" }), opaque]);
    await at("listen", app, async (url) => {
      assert.equal(await who(url, { "x-api-key": "k" }), "robot");
      assert.deepEqual(forms, []);
      assert.equal(await who(url, bearer("opaque")), "eve books");
      assert.deepEqual(forms, ["opaque"]);
      assert.equal((await refused(url, bearer("other")))[0], 401);
    });
    const functions = [(text) => (text === "a" ? principal("ada") : undefined), async (text) => (text === "b" ? principal("bob") : undefined)];
    await at("node:http", shelf(functions), async (url) => {
      assert.equal(await who(url, bearer("a")), "ada");
      assert.equal(await who(url, bearer("b")), "bob");
      assert.equal((await refused(url, bearer("c")))[0], 401);
    });
  }, answer);
});

for (const place of ["listen", "node:http"]) {
  test(`${place}: a request can't choose the audience`, () =>
    withIssuer((issuer) =>
      at(place, shelf(issuer), async (url) => {
        const own = Number(new URL(url).port);
        for (const [port, status] of [[own, 400], [own === 1 ? 2 : 1, 500]]) {
          const headers = { host: `127.0.0.1:${port}`, ...bearer(token(issuer, `http://127.0.0.1:${port}/mcp`)) };
          assert.equal((await refused(url, headers))[0], status);
        }
      }),
    ));
}

test("a host that names the caller of a server with auth is told to choose", async () => {
  const app = shelf(apiKeys({ a: "ada" }));
  const request = new Request("http://localhost/mcp", { method: "POST", body: "{}" });
  await assert.rejects(app.fetch(request, { principal: principal("eve") }), /TypeError: .*leave one of them out/);
  await app.close();
});

test("a question leaves the caller as it was", async () => {
  const app = shelf(apiKeys({ a: "ada", b: "bob" }));
  app.tool("ask", {}, async (_, ctx) => {
    await ctx.elicit("Go on?", { type: "object", properties: {} });
    return ctx.principal.subject;
  });
  for (const place of ["listen", "node:http"]) {
    await at(place, app, async (url) => {
      for (const revision of ["2025-11-25", "2026-07-28"]) {
        for (const [key, name] of [["a", "ada"], ["b", "bob"]]) {
          const client = await Client.connect(url, { headers: bearer(key), revision, onElicit: () => true });
          assert.equal((await client.callTool("ask")).text, name);
          await client.close();
        }
      }
    });
  }
});

test("memory is not affected, and an address without credentials is refused", async () => {
  const app = shelf(apiKeys({ s3cret: "ada" }));
  app.tool("plain", {}, () => 1);
  const client = await Client.connect(app);
  assert.equal((await client.callTool("plain")).data, 1);
  await client.close();
  await assert.rejects(app.listen("tcp://127.0.0.1:0"), /TypeError: .*carries no credentials/);
});

test("a server with a function is not kept alive by the native half", async () => {
  const MANY = 20;
  class Marked {
    verify = () => undefined;
  }
  const make = () => {
    const marked = new Marked();
    new Server("t", { auth: (text) => marked.verify(text) });
  };
  for (let at = 0; at < MANY; at++) make();
  let left = MANY;
  for (let tries = 0; tries < 50 && left > 1; tries++) {
    await turn();
    left = v8.queryObjects(Marked, { format: "count" });
  }
  assert.ok(left <= 1, `${left} of ${MANY} servers are left`);
});

test("methods that can't work are refused with the fix", () => {
  const issuer = "https://as.example.com";
  const server = (auth, options) => () => new Server("shelf", { auth, ...options });
  for (const [make, reason] of [
    [server(7), /auth takes the URL of an issuer/],
    [server(null), /auth takes the URL of an issuer/],
    [server({ issuer }), /auth takes the URL of an issuer/],
    [server([]), /lists no method/],
    [server("http://as.example.com"), /use https/],
    [server(jwt({ issuer, algorithms: ["HS256"] })), /choose one of RS256/],
    [server(introspection({ url: "http://a.example", clientId: "a", clientSecret: "s3cret" })), /use https/],
    [server(apiKeys({ "": "ada" })), /key 1 is empty/],
    [server(apiKeys({ a: "b" }), { scopeImplies: { a: "b" } }), /scopeImplies must be an object of lists/],
    [() => new Server("shelf", { scopeImplies: ["a"] }), /scopeImplies must be an object of lists/],
    [() => new Server("shelf").tool("t", { scopes: "books" }, () => 1), /scopes must be a list/],
    [() => jwt(), /jwt\(\): the options must be an object/],
    [() => jwt({}), /jwt\(\): issuer must be a string/],
    [() => jwt({ issuer, scopes: "books" }), /write \["books"\]/],
    [() => jwt({ issuer, leewayMs: -1 }), /leewayMs must be a number of milliseconds/],
    [() => jwt({ issuer, dpop: "always" }), /"required"/],
    [() => jwt({ issuer, audience: 7 }), /audience must be a string or a list of strings/],
    [() => jwt({ issuer, keys: "{}" }), /keys must be an object/],
    [() => jwt({ issuer, jwksUri: "https://a" }), /unknown option 'jwksUri'; did you mean 'jwksUrl'/],
    [() => introspection({ url: "https://a.example", clientId: "a" }), /clientSecret must be a string/],
    [() => introspection({ url: "https://a.example", clientId: "a", clientSecret: 7, s3cret: 1 }), /unknown option/],
    [() => apiKeys(7), /the keys must be an object/],
    [() => apiKeys({ s3cret: 7 }), /the owner of key 1 must be a principal or a subject/],
    [() => apiKeys({ s3cret: "ada" }, { header: "" }), /header must be a string that is not empty, not an empty string/],
    [() => new InsufficientScope("books"), /write \["books"\]/],
  ]) {
    assert.throws(make, (error) => {
      assert.ok(error instanceof TypeError, String(error));
      assert.match(error.message, reason);
      return true;
    });
  }
  assert.throws(() => apiKeys({ s3cret: 7 }), ({ message }) => !message.includes("s3cret"));
});

test("verifiers show no secrets, and those of another copy are known", () => {
  for (const verifier of [introspection({ url: "https://a.example", clientId: "a", clientSecret: "s3cret" }), apiKeys({ s3cret: "ada" })]) {
    assert.doesNotMatch(inspect(verifier, { showHidden: true, depth: 9 }) + JSON.stringify(verifier), /s3cret/);
  }
  assert.equal(createRequire(import.meta.url)("gudgeon/auth").jwt, jwt);
  assert.equal(new InvalidToken().message, "the token is missing or not valid");
  assert.deepEqual(new InsufficientScope(["a", "b"]).scopes, ["a", "b"]);
  assert.equal(String(new InsufficientScope(["a", "b"])), "InsufficientScope: this needs the scopes: a b");
});
