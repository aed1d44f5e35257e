/** Worker threads that load the package before the main thread does, and end amid calls. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

// A process of its own: what goes wrong here ends it.
function run(what) {
  return spawnSync(process.execPath, [fileURLToPath(new URL("worker-threads.mjs", import.meta.url)), what], {
    encoding: "utf8", timeout: 60_000,
  });
}

for (const what of ["memory", "waiting", "command", "http", "mounted", "exits"]) {
  test(`${what}: a worker that is terminated during calls does not end the process, and the next one serves`, () => {
    const { status, signal, stdout, stderr } = run(what);
    assert.deepEqual([status, signal, stdout], [0, null, "served on the main thread\n"], stderr);
  });
}
