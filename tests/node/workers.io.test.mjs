/** Workers of a cluster share a port: what one seals must be opened by all. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

function serve(options, env = {}, program = "cluster.mjs") {
  return spawnSync(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
    encoding: "utf8", timeout: 60_000, env: { ...process.env, OPTIONS: JSON.stringify(options), ...env },
  });
}

test("workers share a key that none of them was given", () => {
  for (const { status, stderr } of [serve({}), serve({ requestStateKeys: ["secret".repeat(6)] })]) {
    assert.deepEqual([status, stderr], [0, ""]);
  }
});

test("workers find each other where the folder for temporary files can't be used", () => {
  for (const TMPDIR of ["/proc/none", `/tmp/${"x".repeat(100)}`]) {
    const { status, stderr } = serve({}, { TMPDIR });
    assert.deepEqual([status, stderr], [0, ""]);
  }
});

test("the last worker removes what they had in common", () => {
  const folder = mkdtempSync("/tmp/gudgeon-");
  try {
    for (const options of [{}, { store: "memory" }]) {
      const { status, stderr } = serve(options, { TMPDIR: folder });
      assert.deepEqual([status, stderr], [0, ""]);
      assert.deepEqual(readdirSync(folder), []);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("workers listen at one port", () => {
  const { status, stdout, stderr } = serve({}, {}, "cluster-listening.mjs");
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { isOneUrl: true, workers: 2 });
});

test("whichever worker is asked for metrics answers for all, also for one that was killed", () => {
  const { status, stdout, stderr } = serve({}, {}, "cluster-metrics.mjs");
  assert.equal(status, 0, stderr);
  const { calls, all, rest } = JSON.parse(stdout);
  assert.deepEqual(all, Array(10).fill({ calls, workers: 3, missing: 0 }));
  assert.deepEqual(rest, Array(10).fill({ calls, workers: 2, missing: 0 }));
});
