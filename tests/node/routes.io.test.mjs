import assert from "node:assert/strict";
import { test } from "node:test";

import { Server } from "gudgeon";
import { apiKeys } from "gudgeon/auth";

const LOCAL = "http://127.0.0.1:0/mcp";

/** Serves the app while `ask` runs, which gets the URL of a path. */
async function served(app, ask, options) {
  const listening = await app.listen(LOCAL, options);
  try {
    return await ask((path) => new URL(path, listening.url));
  } finally {
    await listening.close();
  }
}

function returning(make, logger) {
  return new Server("t", logger && { logger }).route("GET", "/it", make);
}

const silent = { debug() {}, info() {}, warn() {}, error() {} };

test("a handler gets the request, and its response is sent", async () => {
  const seen = [];
  const app = new Server("t").route("PUT", "/hooks", async (request, caller) => {
    seen.push({ url: request.url, method: request.method, headers: request.headers, body: await request.json(), caller });
    return Response.json({ received: true }, { status: 201, headers: [["Set-Cookie", "a=1"], ["Set-Cookie", "b=2"]] });
  });
  await served(app, async (at) => {
    const response = await fetch(at("/hooks?a=%20b"), { method: "PUT", body: '{"shelf":1}', headers: { "X-Two": "1" } });
    assert.equal(response.status, 201);
    assert.equal(response.headers.get("content-type"), "application/json");
    assert.deepEqual(response.headers.getSetCookie(), ["a=1", "b=2"]);
    assert.deepEqual(await response.json(), { received: true });
    const [{ url, method, headers, body, caller }] = seen;
    assert.equal(url, String(at("/hooks?a=%20b")));
    assert.equal(method, "PUT");
    assert.equal(headers.get("x-two"), "1");
    assert.deepEqual(body, { shelf: 1 });
    assert.deepEqual(caller, { principal: undefined, remote: "127.0.0.1" });
  });
});

test("bodies that are not text pass unchanged, and requests without a type get none", async () => {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  const types = [];
  const app = new Server("t").route("POST", "/echo", async (request) => {
    types.push(request.headers.get("content-type"));
    return new Response(await request.arrayBuffer());
  });
  await served(app, async (at) => {
    for (const bytes of [all, new Uint8Array(100_000).fill(0xff), new TextEncoder().encode("ü".repeat(50_000)), new Uint8Array()]) {
      const response = await fetch(at("/echo"), { method: "POST", body: bytes });
      assert.equal(Buffer.compare(Buffer.from(await response.arrayBuffer()), Buffer.from(bytes)), 0);
    }
  });
  assert.deepEqual(types, [null, null, null, null]);
});

test("a response without a body has none", async () => {
  for (const [make, status] of [[() => new Response(), 200], [() => new Response(null, { status: 204 }), 204], [() => Response.redirect("http://localhost/a", 303), 303]]) {
    await served(returning(make), async (at) => {
      const response = await fetch(at("/it"), { redirect: "manual" });
      assert.equal(response.status, status);
      assert.equal(response.headers.get("content-type"), null);
      assert.equal(await response.text(), "");
    });
  }
});

test("errors and results that are not a Response are answered with 500, and logged", async () => {
  const thrown = () => {
    throw new RangeError("a secret");
  };
  for (const [make, logged] of [
    [thrown, "a secret"],
    [async () => thrown(), "a secret"],
    [() => "text", "a route returns a Response"],
    [() => undefined, "a route returns a Response"],
    [() => Response.error(), "0 is not the status of a response"],
  ]) {
    const errors = [];
    const logger = { ...silent, error: (...parts) => errors.push(parts.join(" ")) };
    await served(returning(make, logger), async (at) => {
      const response = await fetch(at("/it"));
      assert.equal(response.status, 500);
      assert.match(await response.text(), /^the server failed to answer \(reference [\w-]+\)\n$/);
    });
    assert.match(errors.join("\n"), /route GET "\/it" failed \(reference /);
    assert.ok(errors.join("\n").includes(logged), errors.join("\n"));
  }
});

test("only routes with auth need credentials", async () => {
  const app = new Server("t", { auth: apiKeys({ k3y: "reader" }) });
  const who = (_, { principal }) => new Response(principal?.subject ?? "nobody");
  app.route("GET", "/me", { auth: true }, who).route("GET", "/open", who);
  const headers = { Authorization: "Bearer k3y" };
  await served(app, async (at) => {
    const refused = await fetch(at("/me"));
    assert.equal(refused.status, 401);
    assert.equal(refused.headers.get("www-authenticate"), "Bearer");
    assert.equal(await (await fetch(at("/me"), { headers })).text(), "reader");
    assert.equal(await (await fetch(at("/open"), { headers })).text(), "nobody");
  });
});

test("middleware does not run around routes", async () => {
  const methods = [];
  const app = returning(() => new Response("fine"));
  app.middleware(({ method }, next) => {
    methods.push(method);
    return next();
  });
  await served(app, async (at) => assert.equal(await (await fetch(at("/it"))).text(), "fine"));
  assert.deepEqual(methods, []);
});

test("routes that can't work are refused", async () => {
  const handler = () => new Response();
  for (const [args, problem] of [
    [["POST", "hooks", handler], /route "hooks": it is not a path as in URLs/],
    [["POST", "/hooks/:id", handler], /a route has one exact path, without variables/],
    [["post", "/hooks", handler], /"post" is not a method of routes; write one of "GET", "POST"/],
    [["POST", "/hooks"], /the handler must be a function/],
    [["POST", "/hooks", { authenticated: true }, handler], /unknown option 'authenticated'/],
    [["POST", "/hooks", { auth: "yes" }, handler], /auth must be true or false/],
    [["/hooks", handler], /the method and the path must be strings/],
  ]) {
    assert.throws(() => new Server("t").route(...args), problem);
  }
  assert.throws(() => returning(handler).route("GET", "/it", handler), /is already registered/);
  for (const path of ["/mcp", "/sse", "/healthz"]) {
    const app = new Server("t").route("GET", path, handler);
    await assert.rejects(app.listen(LOCAL, { health: "/healthz" }), new RegExp(`route "${path}": this is a path of `));
  }
  const app = new Server("t");
  await served(app, () => assert.throws(() => app.route("GET", "/late", handler), /the server is being served already/));
});

test("a server with routes is not mounted in a host", async () => {
  const app = returning(() => new Response());
  await assert.rejects(app.fetch(new Request("http://localhost/mcp")), /routes are served at addresses of the server's own only/);
});

test("a mounted server has its routes", async () => {
  const shelf = new Server("shelf").route("GET", "/before", () => new Response("before"));
  const house = new Server("house").mount("shelf", shelf);
  shelf.route("GET", "/after", () => new Response("after"));
  await served(house, async (at) => {
    for (const name of ["before", "after"]) assert.equal(await (await fetch(at(`/${name}`))).text(), name);
  });
});
