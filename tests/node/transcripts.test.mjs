/** Every transcript against the fixture server as a process: the frames are equal as JSON, and nothing else comes. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL("../transcripts/", import.meta.url));
const files = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".txt")).sort();
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

async function replay(file) {
  const transcript = readFileSync(folder + file, "utf8").split("\n");
  // A line `dialects: …` names those that the server speaks.
  const dialects = transcript.find((line) => line.startsWith("dialects: "))?.slice("dialects: ".length);
  const server = spawn(process.execPath, [`${folder}server.mjs`, ...(dialects ? ["--dialects", dialects] : [])], { stdio: "pipe", timeout: PATIENCE_MS });
  let [told, state] = ["", ""];
  server.stderr.setEncoding("utf8").on("data", (text) => (told += text));
  const ended = new Promise((resolve) => server.on("close", (code, signal) => resolve(code ?? signal)));
  const lines = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
  try {
    for (const [index, line] of transcript.entries()) {
      if (line.startsWith("> ")) server.stdin.write(`${line.slice(2).replaceAll("<state>", state)}\n`);
      if (!line.startsWith("< ")) continue;
      const { value, done } = await lines.next();
      assert(!done, `line ${index + 1}: the server has ended; stderr: ${told}`);
      state = /"requestState":"([^"]*)"/.exec(value)?.[1] ?? state;
      assert(equal(parse(line.slice(2)), parse(value)), `line ${index + 1}, expected\n${line.slice(2)}\ngot\n${value}`);
    }
    server.stdin.end();
    assert.deepEqual(await lines.next(), { value: undefined, done: true });
    assert.equal(await ended, 0, told);
  } finally {
    server.kill("SIGKILL");
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
