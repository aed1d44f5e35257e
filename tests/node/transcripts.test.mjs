/** Every transcript against the fixture server in memory: the frames are equal as JSON, and nothing else comes. */
import assert from "node:assert/strict";
import { EventEmitter, on } from "node:events";
import { readFileSync, readdirSync } from "node:fs";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";

import { fixture } from "../transcripts/server.mjs";

const folder = fileURLToPath(new URL("../transcripts/", import.meta.url));
/** Returns the value of a line `name: …`. */
const header = (lines, name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);

const all = readdirSync(folder, { recursive: true }).filter((file) => file.endsWith(".txt")).sort();
// Transcripts for other transports are tested from Python, with this server as well.
const files = all.filter((file) => (header(readFileSync(folder + file, "utf8").split("\n"), "wires") ?? "stdio").includes("stdio"));
const PATIENCE_MS = 60_000;

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

/** The end of a client in memory. */
class Peer {
  #inbox = new EventEmitter();
  #sent = new EventEmitter();
  #toServer = on(this.#inbox, "frame", { close: ["end"] });
  #fromServer = on(this.#sent, "frame", { close: ["end"], signal: AbortSignal.timeout(PATIENCE_MS) });

  constructor(words) {
    this.served = fixture(words).serve({
      receive: async () => (await this.#toServer.next()).value?.[0],
      send: async (frame) => void this.#sent.emit("frame", frame),
      close: async () => void this.#sent.emit("end"),
    });
  }

  send(frame) {
    this.#inbox.emit("frame", frame);
  }

  /** Returns the next frame; undefined at the end. */
  async receive() {
    return (await this.#fromServer.next()).value?.[0];
  }

  async close() {
    this.#inbox.emit("end");
    assert.equal(await this.receive(), undefined);
    await this.served;
  }
}

async function replay(file) {
  const transcript = readFileSync(folder + file, "utf8").split("\n");
  let peer = new Peer(options(transcript));
  let state = "";
  for (const [index, line] of transcript.entries()) {
    if (line.startsWith("> ")) peer.send(line.slice(2).replaceAll("<state>", state));
    if (line.startsWith("~ ")) {
      assert(line.startsWith("~ restart"), `what is meant by ${line}?`);
      await peer.close();
      peer = new Peer(options(transcript));
    }
    if (!line.startsWith("< ")) continue;
    const frame = await peer.receive();
    assert(frame !== undefined, `line ${index + 1}: the server has ended`);
    state = /"requestState":"([^"]*)"/.exec(frame)?.[1] ?? state;
    assert(equal(parse(line.slice(2)), parse(frame)), `line ${index + 1}, expected\n${line.slice(2)}\ngot\n${frame}`);
  }
  await peer.close();
}

process.env.GUDGEON_STATE_KEYS = "the key of every fixture which is long";
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
