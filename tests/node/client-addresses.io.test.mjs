// A client by URL against a server of each kind of address, over real sockets.
import assert from "node:assert/strict";
import { execFile, execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { promisify } from "node:util";

import { Client, Server } from "gudgeon";

const folder = mkdtempSync(join(tmpdir(), "gudgeon-"));
after(() => rmSync(folder, { recursive: true }));

function shelf() {
  const app = new Server("shelf");
  app.tool("quick", {}, () => "quick");
  app.tool("later", {}, async (_, ctx) => {
    await ctx.progress(1);
    return new Promise((resolve) => setTimeout(resolve, 10, "later"));
  });
  return app;
}

const ADDRESSES = {
  http: ["http://127.0.0.1:0/mcp", (url) => url],
  ws: ["http://127.0.0.1:0/mcp", (url) => url.replace("http", "ws")],
  tcp: ["tcp://127.0.0.1:0", (url) => url],
  unix: [`unix:${folder}/socket`, (url) => url],
  "http+unix": [`http+unix:${folder}/http-socket`, (url) => url],
  sse: ["http://127.0.0.1:0/mcp", (url) => url.replace("/mcp", "/sse")],
};
const REVISIONS = ["2024-11-05", "2025-11-25", "2026-07-28", undefined];

for (const [kind, [at, of]] of Object.entries(ADDRESSES)) {
  // The pair belongs to the handshake.
  for (const revision of REVISIONS.filter((revision) => kind !== "sse" || revision !== "2026-07-28")) {
    test(`${kind}: a client of ${revision ?? "any revision"}`, async (t) => {
      const here = await shelf().listen(at, { legacySse: true });
      t.after(() => here.close());
      const client = await Client.connect(of(here.url), { revision });
      assert.equal(client.server.name, "shelf");
      assert.equal((await client.callTool("quick")).text, "quick");
      const told = [];
      assert.equal((await client.callTool("later", {}, { onProgress: ({ progress }) => told.push(progress) })).text, "later");
      assert.deepEqual(told, [1]);
      await client.close();
    });
  }
}

// The certificates that a process trusts are read once, and from its environment.
test("https and wss, with a certificate that the environment names", async (t) => {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const about = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...about, "-out", cert, "-keyout", key], { stdio: "ignore" });
  const here = await shelf().listen("https://localhost:0/mcp", { tls: { cert, key } });
  t.after(() => here.close());
  const source = `
    import { Client } from "gudgeon";
    for (const url of process.argv.slice(1)) {
      const client = await Client.connect(url);
      console.log((await client.callTool("quick")).text);
      await client.close();
    }`;
  const run = promisify(execFile);
  const command = ["--input-type=module", "--eval", source, here.url, here.url.replace("https", "wss")];
  const { stdout } = await run(process.execPath, command, { env: { ...process.env, SSL_CERT_FILE: cert } });
  assert.equal(stdout, "quick\nquick\n");
  await assert.rejects(Client.connect(here.url), /TLS/);
  for (const ca of [cert, readFileSync(cert, "utf8"), readFileSync(cert)]) {
    const client = await Client.connect(here.url, { ca, certificate: { cert, key: readFileSync(key) } });
    assert.equal((await client.callTool("quick")).text, "quick");
    await client.close();
  }
  await assert.rejects(Client.connect(here.url, { ca: Buffer.from("secret") }), (error) => {
    assert.ok(error instanceof TypeError && /ca: the text can't be used: it has no certificate/.test(error.message), String(error));
    return !error.message.includes("secret");
  });
  await assert.rejects(Client.connect(here.url, { certificate: "secret" }), /^TypeError: Client\.connect\(\): certificate must be \{ cert, key \}, two PEM files, each as path, text or bytes$/);
});
