// Every example of a TSDoc comment is type-checked and run.
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "gudgeon-docs-"));
after(() => rmSync(folder, { recursive: true }));

const sources = readdirSync(join(root, "bindings-node/ts"), { recursive: true }).filter((name) => name.endsWith(".ts"));
const examples = sources.flatMap(examplesIn);

before(() => {
  mkdirSync(join(folder, "node_modules"));
  symlinkSync(root, join(folder, "node_modules/gudgeon"), "junction");
  for (const name of ["hono", "zod"]) symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name), "junction");
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }\n');
  for (const { file, code } of examples) writeFileSync(join(folder, `${file}.ts`), code);
  const options = {
    module: "Node20", target: "ES2022", strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true,
    lib: ["ES2022", "ESNext.Disposable"], skipLibCheck: true, types: ["node"],
    typeRoots: [join(root, "node_modules/@types")], outDir: join(folder, "made"), rootDir: folder,
  };
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
});

test("the public classes and functions have examples", () => {
  const files = new Set(examples.map(({ source }) => source));
  for (const source of ["server.ts", "client.ts", "client-group.ts", "model/content.ts", "model/errors.ts", "model/results.ts", "model/sign-in.ts", "model/verifiers.ts", "model/types/context.ts", "testing.ts", "testing/auth.ts"]) {
    assert.ok(files.has(source), `${source} has no @example`);
  }
});

test("examples pass the compiler", () => {
  const manifest = createRequire(import.meta.url).resolve("typescript/package.json");
  const { bin } = JSON.parse(readFileSync(manifest, "utf8"));
  const told = spawnSync(process.execPath, [join(manifest, "..", bin.tsc), "-p", folder], { encoding: "utf8" });
  assert.equal(told.status, 0, told.stdout + told.stderr);
});

for (const { file, code, name } of examples) {
  test(`the example of ${name} prints what its comments say`, () => {
    const expected = [...code.matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map(([, said]) => said);
    assert.ok(expected.length > 0, "an example shows something");
    const said = execFileSync(process.execPath, [join(folder, "made", `${file}.js`)], { encoding: "utf8", timeout: 60_000 });
    assert.deepEqual(said.trimEnd().split("\n"), expected);
  });
}

test("every exported class, function and table has a comment", () => {
  const bare = sources.flatMap((source) => {
    const lines = readFileSync(join(root, "bindings-node/ts", source), "utf8").split("\n");
    const isPublic = (line) => /^export (async function|function|class|interface|const|type) \w/.test(line) && names.has(/(\w+)[ <(:=]/.exec(line.replace(/^export (async )?\w+ /, ""))?.[1]);
    return lines.flatMap((line, at) => (isPublic(line) && !lines[at - 1]?.trim().endsWith("*/") ? [`${source}: ${line}`] : []));
  });
  assert.deepEqual(bare, []);
});

/** The exports of the entries. */
const names = new Set(
  ["index.ts", "auth.ts", "testing.ts", "testing/auth.ts"].flatMap((entry) =>
    [...readFileSync(join(root, "bindings-node/ts", entry), "utf8").matchAll(/export (?:type )?\{([^}]*)\}/g)].flatMap(([, list]) =>
      list.split(",").map((one) => one.trim().replace(/^type /, "")).filter(Boolean),
    ),
  ),
);

function examplesIn(source) {
  const text = readFileSync(join(root, "bindings-node/ts", source), "utf8");
  return [...text.matchAll(/@example\n\s*\* ```ts\n([\s\S]*?)\n\s*\* ```/g)].map(([whole, body], at) => {
    const code = body.split("\n").map((line) => line.replace(/^\s*\* ?/, "")).join("\n");
    const rest = text.slice(text.indexOf(whole) + whole.length);
    const declared = rest.slice(rest.indexOf("*/") + 2).trim().split("\n")[0].replace(/[{(<=].*/, "").trim();
    return { source, code, name: `${declared} in ${source}`, file: `${source.replace(/\.ts$/, "").replaceAll("/", "-")}-${at}` };
  });
}
