/** Proxies that `process.env` names, also while the program runs; the rules are tested in Rust. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer } from "node:net";
import { beforeEach, test } from "node:test";
import { Worker } from "node:worker_threads";

import { Client, ClientGroup, ConnectFailed, Server } from "gudgeon";

const VARIABLES = ["http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "REQUEST_METHOD"];
beforeEach(() => VARIABLES.forEach((name) => delete process.env[name]));

/** A proxy that leads every host to `port`, or answers `says`; `heads` has the heads of the requests. */
async function proxied(t, { port, says }) {
  const heads = [];
  const sockets = new Set();
  const server = createServer((client) => {
    sockets.add(client);
    client.on("error", () => undefined);
    let head = "";
    const read = (piece) => {
      head += piece.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      client.off("data", read);
      heads.push(head.split("\r\n\r\n")[0]);
      if (says !== undefined) return client.end(says);
      const upstream = connect(port, "127.0.0.1");
      sockets.add(upstream);
      upstream.on("error", () => client.destroy());
      if (head.startsWith("CONNECT ")) client.write("HTTP/1.1 200 OK\r\n\r\n");
      else upstream.write(head, "latin1");
      client.pipe(upstream).pipe(client);
    };
    client.on("data", read);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    sockets.forEach((socket) => socket.destroy());
    server.close();
  });
  return { heads, address: `127.0.0.1:${server.address().port}` };
}

async function shelf(t) {
  const app = new Server("shelf");
  app.tool("tidy", {}, () => "ok");
  const listening = await app.listen("http://127.0.0.1:0/mcp", { allowedHosts: ["*"] });
  t.after(() => listening.close());
  return Number(new URL(listening.url).port);
}

async function names(target, options) {
  const client = await Client.connect(target, options);
  try {
    return (await client.listTools()).map((tool) => tool.name);
  } finally {
    await client.close();
  }
}

test("assignments to process.env count from the next connect on", async (t) => {
  const port = await shelf(t);
  const { heads, address } = await proxied(t, { port });
  process.env.http_proxy = `http://me:pass%21@${address}`;
  assert.deepEqual(await names("http://shelf.example/mcp"), ["tidy"]);
  assert.match(heads[0], /^POST http:\/\/shelf\.example\/mcp HTTP\/1\.1\r\n/);
  assert.match(heads[0], /\r\nproxy-authorization: Basic bWU6cGFzcyE=(\r\n|$)/);
  process.env.http_proxy = "127.0.0.1:1";
  const names_proxy = (error) => error instanceof ConnectFailed && /127\.0\.0\.1:1 \(http_proxy\) can't be reached/.test(error.message);
  await assert.rejects(names("http://shelf.example/mcp"), names_proxy);
  delete process.env.http_proxy;
  process.env.ALL_PROXY = address;
  const group = await ClientGroup.connect({ a: "ws://shelf.example/mcp" });
  t.after(() => group.close());
  assert.deepEqual((await group.listTools()).map((tool) => tool.name), ["a_tidy"]);
  assert.match(heads.at(-1), /^CONNECT shelf\.example:80 HTTP\/1\.1\r\n/);
});

test("a worker thread uses the proxies of the process, not its own copy of the environment", async (t) => {
  const { heads, address } = await proxied(t, { port: await shelf(t) });
  process.env.http_proxy = address;
  const script = `
    process.env.http_proxy = "127.0.0.1:1";
    const { parentPort } = require("node:worker_threads");
    import("gudgeon").then(async ({ Client }) => {
      const client = await Client.connect("http://shelf.example/mcp");
      parentPort.postMessage((await client.listTools()).length);
      await client.close();
    });`;
  const worker = new Worker(script, { eval: true });
  t.after(() => worker.terminate());
  assert.deepEqual(await once(worker, "message"), [1]);
  assert.ok(heads.length > 0);
});

test("a refusal names the proxy and no password", async (t) => {
  const { heads, address } = await proxied(t, { says: "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n" });
  const headers = { Authorization: "Bearer for-the-server" };
  for (const url of ["https://shelf.example/mcp", "wss://shelf.example/mcp", "http://shelf.example/mcp"]) {
    process.env.ALL_PROXY = `http://me:secret@${address}`;
    await assert.rejects(names(url, { headers }), (error) => {
      assert.ok(error instanceof ConnectFailed, String(error));
      const shown = `${error.stack} ${error.hint} ${JSON.stringify(error)}`;
      assert.ok(shown.includes(`http://${address} (ALL_PROXY)`) && shown.includes("HTTP 407"), shown);
      assert.ok(shown.includes("check the user and the password") && !shown.includes("secret"), shown);
      return true;
    });
  }
  const tunnels = heads.filter((head) => head.startsWith("CONNECT "));
  assert.ok(tunnels.length === 2 && !tunnels.some((head) => head.includes("for-the-server")), tunnels.join());
});

test("a proxy of another kind is refused by its variable; loopback addresses need none", async (t) => {
  const port = await shelf(t);
  process.env.ALL_PROXY = "socks5://me:secret@127.0.0.1:1080";
  const isClear = (error) => error instanceof ConnectFailed && /ALL_PROXY: .*"socks5" is not supported/.test(error.message) && !/secret/.test(error.stack);
  await assert.rejects(names("http://shelf.example/mcp"), isClear);
  assert.deepEqual(await names(`http://localhost:${port}/mcp`), ["tidy"]);
  assert.deepEqual(await names(`ws://127.0.0.1:${port}/mcp`), ["tidy"]);
});

test("NO_PROXY lists hosts that need no proxy", { skip: process.platform !== "linux" && "0.0.0.0 leads to this machine on Linux" }, async (t) => {
  const port = await shelf(t);
  const { heads, address } = await proxied(t, { says: "" });
  process.env.ALL_PROXY = address;
  for (const list of ["*", "0.0.0.0", "a.example, 0.0.0.0/8"]) {
    process.env.NO_PROXY = list;
    assert.deepEqual(await names(`http://0.0.0.0:${port}/mcp`), ["tidy"]);
  }
  assert.deepEqual(heads, []);
});
