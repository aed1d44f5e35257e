// Makes the published files from dist/modules: all code in one CommonJS file, which loads in a few milliseconds, and for
// each entry one file to import and one to require. Both return the same classes.
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { posix } from "node:path";
import { fileURLToPath } from "node:url";

import { rollup } from "@rollup/wasm-node";
import { minify } from "terser";

const ENTRIES = ["index", "auth", "testing", "testing/auth"];
const MODULES = dist("modules");
const NOT_BUNDLED =
  "gudgeon can't find its other files. If this program is bundled, leave gudgeon out of the bundle, because it has a native half: " +
  'esbuild --external:gudgeon, serverExternalPackages: ["gudgeon"] in Next.js, externals in webpack.';

const code = await bundled();
for (const kind of ["esm", "cjs"]) rmSync(dist(kind), { recursive: true, force: true });
for (const file of declarations()) {
  mkdirSync(dist(`cjs/${posix.dirname(file)}`), { recursive: true });
  const types = readFileSync(`${MODULES}/${file}`, "utf8");
  // A program whose option `types` is empty, TypeScript 7's default, has the types of Node only where they are asked for.
  const isEntry = ENTRIES.includes(file.replace(/\.d\.ts$/, ""));
  writeFileSync(dist(`cjs/${file}`), isEntry ? `/// <reference types="node" />\n${types}` : types);
}
// The package is of type "module"; this file makes the files beside it CommonJS.
writeFileSync(dist("cjs/package.json"), '{ "type": "commonjs" }\n');
writeFileSync(dist("cjs/gudgeon.js"), code);

const made = createRequire(import.meta.url)(dist("cjs/gudgeon.js"));
for (const entry of ENTRIES) {
  const names = Object.keys(made[nameOf(entry)]).join(",\n  ");
  const up = entry.includes("/") ? "../" : "";
  mkdirSync(dist(`esm/${posix.dirname(entry)}`), { recursive: true });
  // As with the code, both ways give the same types.
  writeFileSync(dist(`esm/${entry}.d.ts`), `export * from "${up}../cjs/${entry}.js";\n`);
  writeFileSync(dist(`cjs/${entry}.js`), `"use strict";\nmodule.exports = require("${up || "./"}gudgeon.js").${nameOf(entry)};\n`);
  writeFileSync(
    dist(`esm/${entry}.js`),
    `import { createRequire } from "node:module";\n\n` +
      `let all;\ntry {\n` +
      `  // Required, not imported: Node is slow to find out the names that a CommonJS file exports.\n` +
      `  all = createRequire(import.meta.url)("${up}../cjs/gudgeon.js");\n` +
      `} catch (error) {\n  throw new Error(${JSON.stringify(NOT_BUNDLED)}, { cause: error });\n}\n` +
      `export const {\n  ${names},\n} = all.${nameOf(entry)};\n`,
  );
}

async function bundled() {
  const all = ENTRIES.map((entry) => `export * as ${nameOf(entry)} from ${JSON.stringify(`${MODULES}/${entry}.js`)};\n`).join("");
  const bundle = await rollup({
    input: "all",
    external: [/^node:/, "@napi-rs/keyring"],
    plugins: [
      {
        name: "all",
        resolveId: (id) => (id === "all" ? id : null),
        load: (id) => (id === "all" ? all : null),
        resolveImportMeta: (property) => (property === "url" ? 'require("node:url").pathToFileURL(__filename).href' : null),
      },
    ],
  });
  const { output } = await bundle.generate({ format: "cjs", freeze: false, externalLiveBindings: false });
  await bundle.close();
  return shortened(output[0].code);
}

/**
 * Shortens code to about three quarters: local variables get short names, and statements their shortest form. Functions and classes keep
 * their names and places, for stack traces.
 */
async function shortened(code) {
  const names = { keep_classnames: true, keep_fnames: true };
  const forms = { join_vars: true, conditionals: true, if_return: true, booleans: true, comparisons: true };
  const compress = { defaults: false, ecma: 2022, ...forms, ...names };
  return (await minify(code, { compress, mangle: names, format: { max_line_len: 160 } })).code;
}

/** Returns the name of an entry in the file with all code. */
function nameOf(entry) {
  return entry.replace("/", "_");
}

/** Returns the declarations that the entries' types need. Others are left out, since they need types of other packages. */
function declarations() {
  const found = new Set(ENTRIES.map((entry) => `${entry}.d.ts`));
  for (const file of found) {
    for (const [, module] of readFileSync(`${MODULES}/${file}`, "utf8").matchAll(/^(?:import|export) .*from "(\..*)\.js";$/gm)) {
      found.add(posix.join(posix.dirname(file), `${module}.d.ts`));
    }
  }
  return found;
}

function dist(path) {
  return fileURLToPath(new URL(`../dist/${path}`, import.meta.url));
}
