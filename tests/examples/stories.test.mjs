/** Every story of examples/ with the client in TypeScript, against the servers of both languages. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { describe, test } from "node:test";

import { play, REVISIONS, SERVERS, STORIES, WAYS } from "../../examples/dist/run.js";

// Tests as users write them for a server of their own.
import "../../examples/dist/errors/typescript/bank.test.js";

for (const name of STORIES) {
  describe(name, () => {
    for (const way of WAYS) {
      for (const revision of REVISIONS) {
        for (const server of SERVERS) {
          test(`over ${way} in ${revision}, server in ${server}`, () => play(name, way, revision, server));
        }
      }
    }
  });
}

test("no story is forgotten", () => {
  const folders = readdirSync(new URL("../../examples/dist", import.meta.url), { withFileTypes: true });
  const told = folders.filter((folder) => folder.isDirectory()).map((folder) => folder.name);
  assert.deepEqual(told.sort(), [...STORIES].sort());
});
