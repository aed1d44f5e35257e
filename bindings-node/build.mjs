// Builds the addon into bindings-node/dist: node build.mjs [--profile release] [--out FOLDER]
// It calls cargo directly, because `napi build` names a target, and so compiles every dependency a second time.
import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { generateTypeDef } from "@napi-rs/cli";

const PACKAGE = "gudgeon-node";
const here = dirname(fileURLToPath(import.meta.url));
const { values: options } = parseArgs({
  options: {
    profile: { type: "string", default: "release" },
    out: { type: "string", default: join(here, "dist") },
  },
});

const metadata = JSON.parse(cargo(["metadata", "--no-deps", "--format-version", "1"]));
const typeDefDir = join(metadata.target_directory, options.profile, "napi-types");
mkdirSync(typeDefDir, { recursive: true });
const env = { ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: typeDefDir };
const library = build(env);
// The types are written while the crate is compiled: without them it has to be compiled anew.
if (!existsSync(join(typeDefDir, PACKAGE))) build({ ...env, NAPI_FORCE_BUILD_GUDGEON_NODE: String(Date.now()) });

mkdirSync(options.out, { recursive: true });
// A process that has the old file loaded keeps it.
const addon = join(options.out, "gudgeon.node");
copyFileSync(library, `${addon}.new`);
renameSync(`${addon}.new`, addon);
const { dts } = await generateTypeDef({ typeDefDir, cwd: here });
writeFileSync(join(options.out, "native.d.ts"), dts);

function build(env) {
  const wanted = ["--profile", options.profile, "--package", PACKAGE];
  const args = ["build", "--quiet", ...wanted, "--message-format", "json-render-diagnostics"];
  const messages = cargo(args, env).split("\n").filter(Boolean).map((line) => JSON.parse(line));
  const made = messages.find((message) => message.reason === "compiler-artifact" && message.target.name === "gudgeon_node");
  return made.filenames.find((filename) => /\.(so|dylib|dll)$/.test(filename));
}

function cargo(args, env = process.env) {
  const options = { cwd: here, env, encoding: "utf8", stdio: ["ignore", "pipe", "inherit"], maxBuffer: 2 ** 28 };
  const { status, stdout } = spawnSync("cargo", args, options);
  // The error is on standard error.
  if (status !== 0) process.exit(status ?? 1);
  return stdout;
}
