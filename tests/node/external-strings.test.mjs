/** Very large strings of arguments: JavaScript's engine reads them where the native half has put them. */
import assert from "node:assert/strict";
import { test } from "node:test";
import v8 from "node:v8";
import vm from "node:vm";

import { Server } from "gudgeon";
import { connect } from "gudgeon/testing";

const SIZE = 1 << 20;
const CALLS = 4;

v8.setFlagsFromString("--expose-gc");
const collectGarbage = vm.runInNewContext("gc");

/** Returns the bytes that strings and buffers keep outside of the engine's memory. */
function externalBytes() {
  // What the first time finds is counted until the second.
  for (let time = 0; time < 2; time++) collectGarbage();
  return process.memoryUsage().external;
}

/** Compares strings in several ways that read them; `assert.equal` would print both. */
function isSame(seen, text) {
  return seen === text && JSON.stringify(seen) === JSON.stringify(text) && `${seen}.`.slice(-9) === `${text}.`.slice(-9);
}

for (const [encoding, character, bytes] of [["ASCII", "x", 1], ["Latin-1", "é", 1], ["UTF-16", "€", 2]]) {
  test(`${encoding}: they are not copied, stay as they are, and are freed with their strings`, async () => {
    const app = new Server("t");
    const kept = [];
    app.tool("keep", { input: { type: "object", properties: { text: { type: "string" } } } }, ({ text }) => void kept.push(text));
    const client = await connect(app);
    const text = character.repeat(SIZE);
    const before = externalBytes();
    for (let call = 0; call < CALLS; call++) await client.callTool("keep", { text });
    const all = CALLS * SIZE * bytes;
    const outside = externalBytes() - before;
    assert.ok(outside >= all, `${outside} of ${all} bytes are outside of the engine`);
    assert.deepEqual(kept.map((seen) => isSame(seen, text)), Array(CALLS).fill(true));
    kept.length = 0;
    const left = externalBytes() - before;
    assert.ok(left < SIZE, `${left} bytes are left`);
    await client.close();
  });
}
