/** Mounted servers behind proxies: the address of a connection, with which trusted proxies are compared. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request as send } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Server } from "gudgeon";

const HEADERS = { authorization: "Bearer a", forwarded: "for=192.0.2.1", host: "localhost", accept: "text/event-stream" };

/** A server that notes which clients sent requests. */
function noting(trustedProxies) {
  const clients = [];
  const auth = (_, { client }) => {
    clients.push(client);
    return { subject: "ada", scopes: new Set(), claims: {} };
  };
  return { clients, app: new Server("s", { auth, http: { trustedProxies } }) };
}

test("fetch takes the address as remoteAddress", async (t) => {
  const { app, clients } = noting(["10.0.0.0/8"]);
  t.after(() => app.close());
  for (const extra of [{ remoteAddress: "10.0.0.1" }, { remoteAddress: "192.0.2.9" }, {}, undefined, { remoteAddress: 7 }]) {
    const answer = await app.fetch(new Request("http://localhost/mcp", { headers: HEADERS }), extra);
    await answer.text();
  }
  assert.deepEqual(clients, ["192.0.2.1", "192.0.2.9", undefined, undefined, undefined]);
});

for (const [trusted, expected] of [["unix", "192.0.2.1"], ["127.0.0.1", undefined]]) {
  test(`node:http at a Unix socket, with the trusted proxy ${trusted}`, async (t) => {
    const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
    const { app, clients } = noting([trusted]);
    const host = createServer(app.node);
    t.after(async () => {
      host.closeAllConnections();
      host.close();
      await app.close();
      rmSync(folder, { recursive: true });
    });
    const socketPath = join(folder, "socket");
    host.listen(socketPath);
    await once(host, "listening");
    const request = send({ socketPath, path: "/mcp", headers: HEADERS });
    request.end();
    const [answer] = await once(request, "response");
    answer.resume();
    await once(answer, "end");
    assert.deepEqual(clients, [expected]);
  });
}
