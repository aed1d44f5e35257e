import assert from "node:assert/strict";
import { test } from "node:test";

import { text } from "gudgeon";
import * as z from "zod";

import { promptFromWire, resourceFromWire, toolFromWire, toolToWire } from "../../bindings-node/dist/modules/model/components.js";
import { decodeTexts, promptArguments } from "../../bindings-node/dist/modules/plan/prompt-arguments.js";
import { sampleRequestFromWire, sampleResultToWire } from "../../bindings-node/dist/modules/model/sampling.js";
import { compileInput } from "../../bindings-node/dist/modules/schema/compile.js";

test("tools, resources and prompts come from the wire in our names; unknown fields stay", () => {
  const wire = {
    name: "add", inputSchema: { type: "object" }, "x-new": 1, _meta: { k: 1 },
    annotations: { title: "Add", readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
  };
  const tool = toolFromWire(wire);
  assert.deepEqual(tool, {
    name: "add", inputSchema: { type: "object" }, "x-new": 1, meta: { k: 1 },
    annotations: { title: "Add", readOnly: true, destructive: false, idempotent: true, openWorld: false },
  });
  assert.deepEqual(toolToWire(tool), wire);
  assert.deepEqual(resourceFromWire({ uri: "a://b", name: "b", _meta: {} }), { uri: "a://b", name: "b", meta: {} });
  assert.deepEqual(promptFromWire({ name: "p", arguments: [{ name: "a" }, { name: "b", required: true }] }).arguments, [
    { name: "a", required: false },
    { name: "b", required: true },
  ]);
  assert.deepEqual(promptFromWire({ name: "p" }).arguments, []);
});

test("a prompt's arguments are listed from its schema", () => {
  const { json } = compileInput(z.object({ code: z.string().describe("The code"), depth: z.int().optional() }), 'prompt "review", args');
  assert.deepEqual(promptArguments(json, "p"), [
    { name: "code", description: "The code", required: true },
    { name: "depth", required: false },
  ]);
  const open = compileInput(z.record(z.string(), z.string()), "p").json;
  assert.throws(() => promptArguments(open, 'prompt "review", args'), /^TypeError: prompt "review", args: the schema of a prompt's arguments must describe an object with named properties/);
});

test("a prompt's strings are decoded by the schema's types", () => {
  const { json, validate } = compileInput(z.object({ code: z.string(), n: z.int(), deep: z.boolean(), list: z.array(z.number()) }), "p");
  const given = decodeTexts(json, { code: "1", n: "3", deep: "true", list: "[1]" });
  assert.deepEqual(validate(given), { code: "1", n: 3, deep: true, list: [1] });
  assert.throws(() => decodeTexts(json, { n: "three" }), { name: "SchemaMismatch", message: `argument 'n': expected an integer, got "three"` });
  assert.throws(() => decodeTexts(json, { n: "1.5" }), /expected an integer, got "1\.5"/);
  assert.deepEqual(decodeTexts(json, { unknown: "1", constructor: "2" }), { unknown: "1", constructor: "2" });
});

test("sampling as the client sees it", () => {
  const request = sampleRequestFromWire({
    messages: [{ role: "user", content: { type: "text", text: "Hi" } }], maxTokens: 7, systemPrompt: "s", temperature: 0.5, stopSequences: ["."],
    modelPreferences: { hints: [{ name: "m" }, {}], speedPriority: 1 }, tools: [{ name: "t", inputSchema: {} }], toolChoice: { mode: "required" },
  });
  assert.deepEqual(
    [request.messages[0].text, request.maxTokens, request.system, request.temperature, request.stop, request.models, request.speedPriority, request.tools[0].name, request.toolChoice],
    ["Hi", 7, "s", 0.5, ["."], ["m"], 1, "t", "required"],
  );
  const empty = sampleRequestFromWire({});
  assert.deepEqual([empty.messages, empty.stop, empty.models, empty.tools, empty.toolChoice], [[], [], [], [], undefined]);
  assert.deepEqual(sampleResultToWire({ role: "assistant", content: [text("a"), text("b")], text: "a\nb", model: "m", stopReason: undefined }), {
    role: "assistant",
    content: [{ type: "text", text: "a" }, { type: "text", text: "b" }],
    model: "m",
  });
});
