import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

import * as esm from "gudgeon";
import * as auth from "gudgeon/auth";
import * as testing from "gudgeon/testing";
import * as testingAuth from "gudgeon/testing/auth";

const require = createRequire(import.meta.url);
const cjs = require("gudgeon");
const manifest = require("gudgeon/package.json");
const { index: other, auth: otherAuth } = anotherCopy();

test("import and require give the same values, of every entry", () => {
  assert.deepEqual({ ...cjs }, { ...esm });
  assert.equal(cjs.ToolError, esm.ToolError);
  assert.deepEqual({ ...require("gudgeon/auth") }, { ...auth });
  assert.deepEqual({ ...require("gudgeon/testing") }, { ...testing });
  assert.deepEqual({ ...require("gudgeon/testing/auth") }, { ...testingAuth });
});

test("a start waits for none of Node's modules that few servers need", () => {
  const loads = (code) => execFileSync(process.execPath, ["--input-type=module", "-e", `${code}; console.log(process.moduleLoadList.join())`], { encoding: "utf8" });
  const [bare, ours, seen] = ["", 'await import("gudgeon")', 'await import("node:crypto")'].map(loads).map((list) => list.trim().split(","));
  const added = (list) => list.filter((one) => !bare.includes(one) && /^NativeModule (crypto|http|https|net|tls|child_process|worker_threads)$/.test(one));
  assert.deepEqual(added(seen), ["NativeModule crypto"]);
  assert.deepEqual(added(ours), []);
});

test("stack traces name the classes of the source", () => {
  for (const name of Object.keys(esm).filter((name) => /^[A-Z]/.test(name))) assert.equal(esm[name].name, name);
});

test("each of two copies knows the other's errors, results, symbols", () => {
  assert.notEqual(other.ToolError, esm.ToolError);
  assert.ok(new other.ToolError("no") instanceof esm.ToolError);
  assert.ok(new other.ToolError("no") instanceof esm.McpError);
  assert.ok(new esm.PromptResult(["hi"]) instanceof other.PromptResult);
  assert.ok(!(new other.ToolError("no") instanceof esm.ProtocolError));
  assert.equal(other.declined, esm.declined);
  assert.notEqual(esm.declined, esm.cancelled);
  assert.equal(new esm.ToolResult([other.text("a"), "b"]).text, "a\nb");
});

test("each of two copies knows the other's verifiers, refusals, ways to sign in and stores", async () => {
  const { InvalidToken, InsufficientScope, apiKeys, clientCredentials, fileStore, oauth } = otherAuth;
  assert.notEqual(InvalidToken, auth.InvalidToken);
  assert.ok(new InvalidToken() instanceof auth.InvalidToken);
  assert.ok(new InsufficientScope(["a"]) instanceof auth.InsufficientScope);
  assert.ok(!(new InvalidToken() instanceof auth.InsufficientScope));
  assert.ok(new esm.Server("t", { auth: [apiKeys({ a: "ada" }), otherAuth.jwt({ issuer: "https://a.example" })] }));
  const misuse = { auth: clientCredentials({ clientId: "a", privateKey: "b" }) };
  // It is known: only the key is wrong.
  await assert.rejects(esm.Client.connect("http://127.0.0.1:1/mcp", misuse), /BEGIN PRIVATE KEY/);
  assert.ok(auth.oauth({ store: fileStore("/tmp/a") }) && oauth({ store: auth.fileStore("/tmp/a") }));
});

test("a user's subclass keeps the ordinary meaning of instanceof", () => {
  class OutOfStock extends esm.ToolError {}
  assert.ok(new OutOfStock("none left") instanceof OutOfStock);
  assert.ok(new OutOfStock("none left") instanceof other.ToolError);
  assert.ok(!(new esm.ToolError("other") instanceof OutOfStock));
});

test("nothing but Node is needed at run time, and every entry has its types", () => {
  assert.equal(manifest.dependencies, undefined);
  for (const [name, entry] of Object.entries(manifest.exports)) {
    if (typeof entry === "string") continue;
    // TypeScript's resolution "node10" does not read `exports`.
    const types = name === "." ? manifest.types : manifest.typesVersions["*"][name.slice("./".length)]?.[0];
    assert.equal(types, entry.require.types, name);
    assert.ok(existsSync(new URL(`../../${types}`, import.meta.url)), types);
    for (const way of ["import", "require"]) {
      assert.deepEqual(Object.keys(entry[way]), ["types", "default"]);
      assert.match(entry[way].types, way === "import" ? /dist\/esm\/.*\.d\.ts$/ : /dist\/cjs\/.*\.d\.ts$/);
    }
  }
});

test("published types need Node's types and nothing else, and stay among themselves", () => {
  const published = new URL("../../bindings-node/dist/cjs/", import.meta.url);
  for (const [kind, wanted] of [["esm", 3], ["cjs", 10]]) {
    const root = new URL(`../${kind}/`, published);
    const files = readdirSync(root, { recursive: true }).filter((file) => file.endsWith(".d.ts"));
    assert.ok(files.length >= wanted);
    for (const file of files) {
      const source = readFileSync(new URL(file, root), "utf8").replace(/^ *\*.*$/gm, "");
      for (const [, module] of source.matchAll(/\b(?:from|import\() ?"([^"]+)"/g)) {
        const target = module.startsWith(".") ? new URL(module.replace(/\.js$/, ".d.ts"), new URL(file, root)) : undefined;
        const isThere = target?.href.startsWith(published.href) && existsSync(target);
        assert.ok(isThere || module.startsWith("node:"), `${kind}/${file} needs ${module}`);
      }
    }
  }
});

test("a package that was bundled by mistake fails with the fix", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "bundled-"));
  t.after(() => rmSync(folder, { recursive: true }));
  for (const [file, bundle] of [["esm/index.js", "esm.mjs"], ["cjs/gudgeon.js", "all.cjs"]]) {
    copyFileSync(new URL(`../../bindings-node/dist/${file}`, import.meta.url), join(folder, bundle));
  }
  await assert.rejects(import(pathToFileURL(join(folder, "esm.mjs")).href), /leave gudgeon out of the bundle, because it has a native half: esbuild --external:gudgeon/);
  const { Server } = require(join(folder, "all.cjs")).index;
  assert.throws(() => new Server("s"), /native module can't be loaded: dist\/gudgeon\.node is missing; .* a bundler must leave gudgeon out \(esbuild --external:gudgeon/);
});

test("the package names the platform that it was built for, and where it comes from", () => {
  const isMusl = process.report.getReport().header.glibcVersionRuntime === undefined;
  const { os, cpu, libc, repository } = manifest;
  assert.deepEqual({ os, cpu, libc }, { os: [process.platform], cpu: [process.arch], libc: process.platform === "linux" ? [isMusl ? "musl" : "glibc"] : undefined });
  assert.match(repository.url, /^git\+https:\/\/.*\/gudgeon\.git$/);
});

test("on another platform the error names both platforms, and a damaged module what is wrong", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "platform-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "bindings-node/dist/cjs"), { recursive: true });
  const root = new URL("../../", import.meta.url);
  for (const file of ["package.json", "bindings-node/dist/cjs/gudgeon.js", "bindings-node/dist/cjs/package.json"]) copyFileSync(new URL(file, root), join(folder, file));
  const load = (before) => {
    const code = `${before}; new (require("./bindings-node/dist/cjs/gudgeon.js").index.Server)("s")`;
    return spawnSync(process.execPath, ["-e", code], { cwd: folder, encoding: "utf8", env: { ...process.env, GUDGEON_NATIVE: "" } }).stderr;
  };
  const foreign = load('Object.defineProperty(process, "platform", { value: "sunos" })');
  assert.match(foreign, new RegExp(`this package was built for ${process.platform}-${process.arch}.*, and this is sunos-${process.arch}; run it there, or build it from source`));
  writeFileSync(join(folder, "bindings-node/dist/gudgeon.node"), "no library");
  assert.match(load(""), /native module can't be loaded: .*gudgeon\.node.*; build it from source on this machine/);
});

test("the lock file names no download address", () => {
  const lock = readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8");
  assert.doesNotMatch(lock, /"resolved"/);
});

/** The files of a package that brought a Gudgeon of its own. */
function anotherCopy() {
  const file = require.resolve("../../bindings-node/dist/cjs/gudgeon.js");
  const ours = require.cache[file];
  delete require.cache[file];
  try {
    return require(file);
  } finally {
    require.cache[file] = ours;
  }
}
