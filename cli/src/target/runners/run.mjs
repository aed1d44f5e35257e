// Is loaded before a program, and serves the server that the program exports if the program ends without having served
// one. The `gudgeon` command passes this text to Node, for projects in which Gudgeon need not be installed: the file may be
// a server of another library.
import { fstatSync, realpathSync } from "node:fs";
import { createRequire } from "node:module";
import { isatty } from "node:tty";
import { pathToFileURL } from "node:url";

let isChosen = false;
let isRunning = false;
const startsWithoutInput = hasNoInput();

const { GUDGEON_RUNNER_FILE: file, GUDGEON_RUNNER_NAME: name, GUDGEON_RUNNER_AT: at } = process.env;

// A loader of TypeScript is a program of Node as well, which starts the file in another process.
if (file !== undefined && isProgram()) start();

function isProgram() {
  try {
    return realpathSync(process.argv[1]) === realpathSync(file);
  } catch {
    return false;
  }
}

function start() {
  const options = process.env.GUDGEON_RUNNER_NODE_OPTIONS;
  if (options) process.env.NODE_OPTIONS = options;
  else delete process.env.NODE_OPTIONS;
  for (const name of Object.keys(process.env)) if (name.startsWith("GUDGEON_RUNNER")) delete process.env[name];
  if (at || name || startsWithoutInput) replaceRun();
  // The event loop is empty: nothing serves, or what was served has ended.
  process.once("beforeExit", () => void serveExported());
}

/** Has Gudgeon's servers listen at an address, wherever the program says; with a name only that server is served. */
function replaceRun() {
  let Server;
  try {
    ({ Server } = createRequire(file)("gudgeon"));
  } catch (error) {
    // A named server of another library needs nothing here.
    if (at) fail(`the package gudgeon can't be loaded from ${file}: ${error.message}`, "npm install gudgeon");
    return;
  }
  const run = Server.prototype.run;
  Server.prototype.run = async function (place = "stdio", options = {}) {
    if (name && !isChosen) return;
    isRunning = true;
    return run.call(this, at || place, place === "stdio" ? {} : options);
  };
}

/** Returns whether standard input was read, or was taken away from the program, as Gudgeon's servers do. */
function hasServed() {
  if (at || isRunning) return isRunning;
  return (!startsWithoutInput && hasNoInput()) || process.stdin.bytesRead > 0 || process.stdin.readableEnded;
}

/** Returns whether standard input is `/dev/null`. */
function hasNoInput() {
  return fstatSync(0).isCharacterDevice() && !isatty(0);
}

async function serveExported() {
  if (!name && (process.exitCode || hasServed())) return;
  const module = await import(pathToFileURL(file).href);
  const values = exported(module);
  let server;
  if (name) {
    server = values.get(name);
    if (server === undefined) fail(`${file} has no export ${JSON.stringify(name)}`, "check the name after the colon");
    if (typeof server?.run !== "function") fail(`${file}:${name} is not a server`, "name an export that is a Server of gudgeon");
  } else {
    const servers = new Map();
    for (const [key, value] of values) if (isServer(value) && ![...servers.values()].includes(value)) servers.set(key, value);
    if (servers.size > 1) {
      const [first] = servers.keys();
      fail(`${file} exports several servers: ${[...servers.keys()].join(", ")}`, `name one of them: ${file}:${first}`);
    }
    if (servers.size === 0) {
      const hint = 'export one, as in `export const app = new Server("name")`, or run it: `await app.run()`';
      fail(`${file} runs no server and exports none`, hint);
    }
    [server] = servers.values();
  }
  isChosen = true;
  await server.run(at || "stdio");
}

function exported(module) {
  const values = new Map(Object.entries(module).filter(([key]) => key !== "module.exports"));
  const whole = module.default;
  // A CommonJS file exports one object.
  if (typeof whole === "object" && whole !== null && !isServer(whole)) {
    for (const [key, value] of Object.entries(whole)) if (!values.has(key)) values.set(key, value);
  }
  return values;
}

function isServer(value) {
  return typeof value === "object" && value !== null && value[Symbol.for("gudgeon.Server")] === true;
}

function fail(message, hint) {
  console.error(`error: ${message}\n  hint: ${hint}`);
  process.exit(2);
}
