/** Every transcript against the fixture server as a process: the frames are equal as JSON, and nothing else comes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../transcripts/", import.meta.url));
/** Returns the value of a line `name: …`. */
const header = (lines, name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);

const all = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".txt")).sort();
// Transcripts for other transports are tested from Python, with this server as well.
const files = all.filter((file) => (header(readFileSync(folder + file, "utf8").split("\n"), "wires") ?? "stdio").includes("stdio"));
const PATIENCE_MS = 20_000;

/** Integers that a double can't hold become texts, so that they are compared digit by digit. */
const parse = (json) => JSON.parse(json.replace(/([:[,]\s*)(-?\d{16,})(?=[,}\]])/g, '$1"$2"'));

/** The texts `<any>` and `<state>` stand for any text. */
function equal(expected, actual) {
  if (expected === "<any>" || expected === "<state>") return typeof actual === "string";
  if (typeof expected !== "object" || expected === null) return expected === actual;
  if (typeof actual !== "object" || actual === null || Array.isArray(expected) !== Array.isArray(actual)) return false;
  const names = Object.keys(expected);
  return names.length === Object.keys(actual).length && names.every((name) => Object.hasOwn(actual, name) && equal(expected[name], actual[name]));
}

function options(lines) {
  const [dialects, limit] = [header(lines, "dialects"), header(lines, "limit")];
  const around = header(lines, "middleware");
  return [...(dialects ? ["--dialects", dialects] : []), ...(limit ? ["--limit", limit] : []), ...(around ? ["--around"] : [])];
}

class Peer {
  told = "";

  constructor(options) {
    const env = { ...process.env, GUDGEON_STATE_KEYS: "the key of every fixture" };
    this.process = spawn(process.execPath, [`${folder}server.mjs`, ...options], { stdio: "pipe", timeout: PATIENCE_MS, env });
    this.process.stderr.setEncoding("utf8").on("data", (text) => (this.told += text));
    this.ended = new Promise((resolve) => this.process.on("close", (code, signal) => resolve(code ?? signal)));
    this.lines = createInterface({ input: this.process.stdout })[Symbol.asyncIterator]();
  }

  async close() {
    this.process.stdin.end();
    assert.deepEqual(await this.lines.next(), { value: undefined, done: true });
    assert.equal(await this.ended, 0, this.told);
  }
}

async function replay(file) {
  const transcript = readFileSync(folder + file, "utf8").split("\n");
  let peer = new Peer(options(transcript));
  let state = "";
  try {
    for (const [index, line] of transcript.entries()) {
      if (line.startsWith("> ")) peer.process.stdin.write(`${line.slice(2).replaceAll("<state>", state)}\n`);
      if (line.startsWith("~ ")) {
        assert(line.startsWith("~ restart"), `what is meant by ${line}?`);
        await peer.close();
        peer = new Peer(options(transcript));
      }
      if (!line.startsWith("< ")) continue;
      const { value, done } = await peer.lines.next();
      assert(!done, `line ${index + 1}: the server has ended; stderr: ${peer.told}`);
      state = /"requestState":"([^"]*)"/.exec(value)?.[1] ?? state;
      assert(equal(parse(line.slice(2)), parse(value)), `line ${index + 1}, expected\n${line.slice(2)}\ngot\n${value}`);
    }
    await peer.close();
  } finally {
    peer.process.kill("SIGKILL");
  }
}

describe("transcripts", { concurrency: 4 }, () => {
  for (const file of files) test(file, () => replay(file));
});

test("the transcripts are there", () => assert(files.length > 20));

test("frames are compared strictly", () => {
  assert(equal({ a: "<any>", b: [1] }, { b: [1], a: "x" }));
  for (const [expected, actual] of [[1, true], [{}, { a: 1 }], [[1], [1, 1]], ["<any>", 1], [{}, []], [null, {}]]) {
    assert(!equal(expected, actual));
  }
  assert(!equal(parse('{"id":9007199254740993}'), parse('{"id":9007199254740992}')));
});
