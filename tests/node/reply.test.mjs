import assert from "node:assert/strict";
import { test } from "node:test";

import { PromptResult, ResourceResult, ToolResult, assistant, embed, image, text, user } from "gudgeon";

import { toReply } from "../../bindings-node/dist/modules/plan/replies.js";
import {
  promptResultFromWire,
  resourceResultFromWire,
  toolResultFromWire,
} from "../../bindings-node/dist/modules/model/results.js";

const [NOTHING, BLOB, PARTS, RESULT, TEXT, JSON_] = [0, 1, 2, 3, 4, 5];
const reads = (kind, value) => {
  const [how, payload] = toReply(kind, value);
  return [how, how === PARTS || how === RESULT || how === JSON_ ? JSON.parse(payload) : payload];
};

test("tool: strings raw, nothing, JSON", () => {
  assert.deepEqual(reads("tool", 'a "b"\n'), [TEXT, 'a "b"\n']);
  assert.deepEqual(reads("tool", undefined), [NOTHING, ""]);
  for (const value of [null, 3, false, { a: [1] }, ["a", "b"], [], { type: "text", text: "a" }, [{ type: "text", text: "a" }]]) {
    assert.deepEqual(reads("tool", value), [JSON_, value]);
  }
  assert.deepEqual(reads("tool", { at: new Date(0), gone: undefined }), [JSON_, { at: "1970-01-01T00:00:00.000Z" }]);
});

test("tool: a list with at least one content value is content, its strings are texts", () => {
  assert.deepEqual(reads("tool", text("a")), [PARTS, [{ type: "text", text: "a" }]]);
  assert.deepEqual(reads("tool", ["Here", image(new Uint8Array([1]), "png")]), [PARTS, ["Here", { type: "image", data: "AQ==", mimeType: "image/png" }]]);
  assert.throws(
    () => toReply("tool", [text("a"), { b: 1 }]),
    /the result\[1\] is an object among content; .* return content and data as new ToolResult\(\[…\], \{ structuredContent: … \}\)/,
  );
});

test("tool: a ToolResult sets every member itself", () => {
  const whole = new ToolResult(["all", text("b")], { structuredContent: { a: 1 }, meta: { k: 1 }, isError: true });
  assert.deepEqual(reads("tool", whole), [
    RESULT,
    { content: [{ type: "text", text: "all" }, { type: "text", text: "b" }], structuredContent: { a: 1 }, isError: true, _meta: { k: 1 } },
  ]);
  assert.deepEqual(reads("tool", new ToolResult("a")), [RESULT, { content: [{ type: "text", text: "a" }] }]);
  assert.equal(whole.text, "all\nb");
  assert.deepEqual([whole.data, new ToolResult("a").data], [{ a: 1 }, "a"]);
});

test("a value that is not JSON is an error with its place and the fix", () => {
  const cyclic = { a: [{}] };
  cyclic.a[0].up = cyclic;
  const cases = [
    [{ a: { "b c": [1, NaN] } }, 'the result.a["b c"][1] is NaN, which JSON can\'t represent; write null or a string'],
    [{ f: () => 1 }, "the result.f is a function, which JSON can't represent"],
    [() => 1, "the result is a function, which JSON can't represent"],
    [cyclic, "the result.a[0].up contains itself (a cycle), which JSON can't represent"],
    [{ m: new Map() }, /the result\.m is a Map.*Object\.fromEntries/],
    [[new Set()], /the result\[0\] is a Set/],
    [{ raw: new Uint8Array(2) }, /the result\.raw is a typed array.*image\(\)/],
    [{ later: Promise.resolve(1) }, /the result\.later is a Promise.*await it/],
    [{ error: new Error("x") }, /the result\.error is an Error.*throw it/],
    [NaN, "the result is NaN, which JSON can't represent; write null or a string"],
    [{ rates: [1, null, 0 / 0] }, "the result.rates[2] is NaN, which JSON can't represent; write null or a string"],
    [{ far: { off: -Infinity } }, "the result.far.off is -Infinity, which JSON can't represent; write null or a string"],
    [{ at: new Date(NaN) }, "the result.at is an invalid date, which JSON can't represent; write null or a string"],
    [{ one: { toJSON: () => ({ n: NaN }) } }, "the result.one.n is NaN, which JSON can't represent; write null or a string"],
    [{ of: new Number(NaN) }, "the result.of is NaN, which JSON can't represent; write null or a string"],
    [new (class Point { x = NaN; })(), "the result.x is NaN, which JSON can't represent; write null or a string"],
    [{ match: /a/ }, "the result.match is of class RegExp, which JSON can't represent; write its contents"],
    [{ query: new URLSearchParams("a=1") }, "the result.query is of class URLSearchParams, which JSON can't represent; write its contents"],
    [[1, 2].values(), "the result is of class Array Iterator, which JSON can't represent; write its contents"],
    [new ToolResult("a", { structuredContent: NaN }), /the result\.structuredContent is NaN/],
    [{ cover: image(new Uint8Array(1), "png") }, /the result\.cover is content inside other data; return content alone/],
    [new ToolResult("a", { structuredContent: { n: 2n ** 64n, m: new Map() } }), /the result\.structuredContent\.m is a Map/],
    [{ get bad() { throw new Error("boom"); } }, /the result can't be written as JSON: Error: boom/],
    [new ResourceResult("a"), /the result is of class ResourceResult; the result class of a tool is ToolResult/],
  ];
  for (const [value, message] of cases) assert.throws(() => toReply("tool", value), { name: "TypeError", message });
});

test("what JSON writes as a string is plain text, and a BigInt an integer", () => {
  class Price {
    toJSON() {
      return "1.50 EUR";
    }
  }
  for (const kind of ["tool", "resource"]) {
    assert.deepEqual(reads(kind, new Date(0)), [TEXT, "1970-01-01T00:00:00.000Z"]);
    assert.deepEqual(reads(kind, new URL("http://a/b?c")), [TEXT, "http://a/b?c"]);
    assert.deepEqual(reads(kind, new Price()), [TEXT, "1.50 EUR"]);
    assert.deepEqual(toReply(kind, 12345678901234567890n), [JSON_, "12345678901234567890"]);
    assert.deepEqual(toReply(kind, { a: [-(2n ** 64n), 1n, "2n"] }), [JSON_, '{"a":[-18446744073709551616,1,"2n"]}']);
  }
});

test("values that JSON only seems to lose are written", () => {
  const said = [[1, , undefined], { at: new Date(0), gone: undefined }, new (class Empty {})(), Object.create(null), new URL("http://a/")];
  assert.deepEqual(reads("tool", said), [JSON_, [[1, null, null], { at: "1970-01-01T00:00:00.000Z" }, {}, {}, "http://a/"]]);
  assert.deepEqual(reads("tool", [new Boolean(false), new String("a"), new Number(1)]), [JSON_, [false, "a", 1]]);
});

test("deep data passes, bottomless data is an error", () => {
  const nest = (depth) => {
    let value = 1;
    for (let i = 0; i < depth; i++) value = [value];
    return value;
  };
  assert.equal(toReply("tool", nest(500))[0], JSON_);
  assert.throws(() => toReply("tool", nest(1_000_000)), /the result is nested too deeply/);
});

test("the same object twice is not a cycle", () => {
  const shared = { a: 1 };
  assert.deepEqual(reads("tool", new (class Pair { left = shared; right = shared; })()), [JSON_, { left: { a: 1 }, right: { a: 1 } }]);
});

test("resource: text, bytes, JSON, ResourceResult", () => {
  assert.deepEqual(reads("resource", "t"), [TEXT, "t"]);
  assert.throws(() => reads("resource", undefined), { name: "TypeError", message: /^the result is undefined: a resource returns a string, bytes, JSON/ });
  assert.deepEqual(reads("resource", new Uint8Array([1, 2])), [BLOB, "AQI="]);
  assert.deepEqual(reads("resource", Buffer.from("hi")), [BLOB, "aGk="]);
  assert.deepEqual(reads("resource", { id: 1 }), [JSON_, { id: 1 }]);
  assert.deepEqual(reads("resource", new ResourceResult(new Uint8Array([1]), { mimeType: "image/png", meta: { k: 1 } })), [
    RESULT,
    { contents: [{ mimeType: "image/png", blob: "AQ==" }], _meta: { k: 1 } },
  ]);
  assert.throws(() => toReply("resource", embed({ uri: "a://b", text: "" })), /the result is content, which only tools and prompts return/);
});

test("prompt: string, message, list, PromptResult, and nothing else", () => {
  assert.deepEqual(reads("prompt", "Hi"), [TEXT, "Hi"]);
  assert.deepEqual(reads("prompt", user("Hi")), [PARTS, [{ role: "user", content: { type: "text", text: "Hi" } }]]);
  assert.deepEqual(reads("prompt", ["a", assistant("b")]), [PARTS, ["a", { role: "assistant", content: { type: "text", text: "b" } }]]);
  assert.deepEqual(reads("prompt", new PromptResult(["a"], { description: "d" })), [
    RESULT,
    { messages: [{ role: "user", content: { type: "text", text: "a" } }], description: "d" },
  ]);
  for (const value of [undefined, 1, { role: "user" }, [text("a")], [1]]) {
    assert.throws(() => toReply("prompt", value), /return a string, user\(…\), assistant\(…\)/);
  }
  assert.throws(() => new PromptResult([{ role: "user" }]), /messages\[0\] must be a string, user\(…\) or assistant\(…\), not {"role":"user"}/);
});

test("completion and vendors' methods", () => {
  assert.deepEqual(reads("completion", ["a"]), [JSON_, ["a"]]);
  assert.deepEqual(reads("completion", { values: ["a"], total: 3 }), [RESULT, { completion: { values: ["a"], total: 3 } }]);
  assert.throws(() => toReply("completion", [1]), /return a list of strings/);
  assert.deepEqual(reads("method", { ok: true }), [JSON_, { ok: true }]);
  assert.deepEqual(reads("method", undefined), [NOTHING, ""]);
});

test("results come back from the wire", () => {
  const tool = toolResultFromWire({ content: [{ type: "text", text: "3" }], structuredContent: { result: 3 }, _meta: { k: 1 } }, 3);
  assert.deepEqual([tool.text, tool.data, tool.structuredContent, tool.isError, tool.meta], ["3", 3, { result: 3 }, false, { k: 1 }]);
  assert.deepEqual(toolResultFromWire({}).content, []);
  const resource = resourceResultFromWire({ contents: [{ uri: "a://b", text: "t" }, { uri: "a://c", blob: "AQ==" }] });
  assert.deepEqual([resource.text, resource.blob], ["t", new Uint8Array([1])]);
  const prompt = promptResultFromWire({ description: "d", messages: [{ role: "assistant", content: { type: "text", text: "t" } }] });
  assert.deepEqual([prompt.description, prompt.messages[0].role, prompt.messages[0].text], ["d", "assistant", "t"]);
});
