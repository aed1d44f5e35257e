/** A server that is started by hand says what it waits for. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { test } from "node:test";

const SERVER = `import { Server } from "gudgeon"; await new Server("shelf").run();`;
/** Runs a program with a terminal as its standard input, ends it by Ctrl-D, and prints its stderr. */
const TERMINAL = `
import os, pty, subprocess, sys
master, slave = pty.openpty()
child = subprocess.Popen(sys.argv[1:], stdin=slave, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
os.close(slave)
line = child.stderr.readline()
os.write(master, b"\\x04")
sys.stdout.buffer.write(line + child.stderr.read())
sys.exit(child.wait())
`;

function run(command, args) {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"] });
  const output = [];
  child.stdout.on("data", (chunk) => output.push(chunk));
  child.stderr.on("data", (chunk) => output.push(chunk));
  return new Promise((resolve) => child.on("close", (code) => resolve([code, Buffer.concat(output).toString()])));
}

const server = [process.execPath, "--input-type=module", "-e", SERVER];

test("a server over stdio in a terminal writes once that it waits for a client", async () => {
  const [code, output] = await run("python3", ["-c", TERMINAL, ...server]);
  assert.equal(code, 0, output);
  const lines = output.trimEnd().split("\n");
  assert.equal(lines.length, 1, output);
  assert.match(lines[0], /^shelf: serving over stdio, waiting for an MCP client on standard input; to try it, run `npx gudgeon inspect -- node --input-type=module -e .*`; Ctrl-C ends it$/);
});

test("without a terminal it writes nothing", async () => {
  assert.deepEqual(await run(server[0], server.slice(1)), [0, ""]);
});
