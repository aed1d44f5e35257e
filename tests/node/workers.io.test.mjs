/** Workers of a cluster share a port: what one seals must be opened by all. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

function serve(options, env = {}, program = "cluster.mjs") {
  return spawnSync(process.execPath, [fileURLToPath(new URL(program, import.meta.url))], {
    encoding: "utf8", timeout: 60_000, env: { ...process.env, OPTIONS: JSON.stringify(options), ...env },
  });
}

test("a worker with a key of its own warns", () => {
  const { status, stderr } = serve({});
  assert.equal(status, 0, stderr);
  assert.match(stderr, /^warning: every worker encrypts requestState with its own key.*; set the option requestStateKeys, or the environment variable GUDGEON_STATE_KEYS$/m);
});

test("with shared keys there is no warning", () => {
  for (const { status, stderr } of [serve({ requestStateKeys: ["secret".repeat(6)] }), serve({}, { GUDGEON_STATE_KEYS: "secret".repeat(6) })]) {
    assert.deepEqual([status, stderr], [0, ""]);
  }
});

test("workers listen at one port", () => {
  const { status, stdout, stderr } = serve({}, {}, "cluster-listening.mjs");
  assert.equal(status, 0, stderr);
  assert.deepEqual(JSON.parse(stdout), { isOneUrl: true, workers: 2 });
});
