// Groups that are closed.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { ClientGroup } from "gudgeon";

/** A server that ends once all servers have seen the end of their input, also after SIGTERM. */
const PATIENT = `
const { readdirSync, writeFileSync } = require("node:fs");
const [folder, name, count] = process.argv.slice(1);
process.on("SIGTERM", () => {});
const lines = require("node:readline").createInterface({ input: process.stdin });
lines.on("line", (line) => {
  const { id, method } = JSON.parse(line);
  const result = { protocolVersion: "2025-11-25", capabilities: {}, serverInfo: { name, version: "1" } };
  if (method === "initialize") console.log(JSON.stringify({ jsonrpc: "2.0", id, result }));
});
lines.on("close", () => {
  writeFileSync(folder + "/ended " + name, "");
  setInterval(() => {
    if (readdirSync(folder).filter((file) => file.startsWith("ended")).length < count) return;
    writeFileSync(folder + "/saw all " + name, "");
    process.exit(0);
  }, 10);
});
`;

test("a group closes its clients at the same time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gudgeon-closing-"));
  const targets = {};
  for (const name of ["a", "b", "c"]) targets[name] = { command: process.execPath, args: ["-e", PATIENT, folder, name, "3"] };
  const group = await ClientGroup.connect(targets, { revision: "2025-11-25" });
  assert.equal(group.clients.size, 3);
  await group.close();
  assert.deepEqual(readdirSync(folder).sort(), ["ended a", "ended b", "ended c", "saw all a", "saw all b", "saw all c"]);
});
