import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

import * as esm from "gudgeon";

const require = createRequire(import.meta.url);
const cjs = require("gudgeon");
const manifest = require("gudgeon/package.json");

test("import and require are two copies with the same names", () => {
  assert.deepEqual(Object.keys(cjs).sort(), Object.keys(esm).sort());
  assert.notEqual(cjs.ToolError, esm.ToolError);
});

test("each copy knows the other's errors, results, symbols", () => {
  assert.ok(new cjs.ToolError("no") instanceof esm.ToolError);
  assert.ok(new cjs.ToolError("no") instanceof esm.McpError);
  assert.ok(new esm.PromptResult(["hi"]) instanceof cjs.PromptResult);
  assert.ok(!(new cjs.ToolError("no") instanceof esm.ProtocolError));
  assert.equal(cjs.declined, esm.declined);
  assert.notEqual(esm.declined, esm.cancelled);
  assert.equal(new esm.ToolResult([cjs.text("a"), "b"]).text, "a\nb");
});

test("a user's subclass keeps the ordinary meaning of instanceof", () => {
  class OutOfStock extends esm.ToolError {}
  assert.ok(new OutOfStock("none left") instanceof OutOfStock);
  assert.ok(new OutOfStock("none left") instanceof cjs.ToolError);
  assert.ok(!(new esm.ToolError("other") instanceof OutOfStock));
});

test("nothing but Node is needed at run time, and every entry has its types", () => {
  assert.equal(manifest.dependencies, undefined);
  for (const entry of [manifest.exports["."], manifest.exports["./testing"]]) {
    for (const way of ["import", "require"]) {
      assert.deepEqual(Object.keys(entry[way]), ["types", "default"]);
      assert.match(entry[way].types, way === "import" ? /dist\/esm\/.*\.d\.ts$/ : /dist\/cjs\/.*\.d\.ts$/);
    }
  }
});

test("the lock file names no download address", () => {
  const lock = readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});
