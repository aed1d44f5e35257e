import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { runInNewContext } from "node:vm";

import * as gudgeon from "gudgeon";

import { errorOf } from "../../bindings-node/dist/modules/client/errors.js";
import { failureJson } from "../../bindings-node/dist/modules/call/failures.js";
import { SchemaMismatch } from "../../bindings-node/dist/modules/schema/compile.js";

const { Cancelled, ConnectFailed, Declined, McpError, NotSupported, ProtocolError, ResourceNotFound, ToolError, ToolResult, UrlElicitationRequired } = gudgeon;
const failure = (thrown, options) => JSON.parse(failureJson(thrown, options));

test("every error has its kind and name", () => {
  const kinds = {
    ConnectFailed: "connect", ConnectionLost: "lost", CallTimeout: "timeout", AuthError: "auth", NotSupported: "unsupported",
    Declined: "declined", Cancelled: "cancelled", UrlElicitationRequired: "protocol",
  };
  for (const [name, kind] of Object.entries(kinds)) {
    const error = new gudgeon[name]("m", { hint: "h", target: "t", phase: "call", cause: 1 });
    assert.ok(error instanceof McpError && error instanceof Error);
    assert.deepEqual([error.name, error.kind, error.message, error.hint, error.target, error.phase, error.cause], [name, kind, "m", "h", "t", "call", 1]);
    assert.match(String(error.stack), new RegExp(`${name}: m|Error: m`));
  }
  const failed = new ConnectFailed("m", { exitStatus: 3, stderr: "oops" });
  assert.deepEqual([failed.exitStatus, failed.stderr], [3, "oops"]);
});

test("each error of the core has its class", () => {
  const table = JSON.parse(readFileSync(new URL("../client_errors.json", import.meta.url), "utf8"));
  for (const { error, class: expected, also = [] } of table) {
    const thrown = errorOf({ message: "m", ...error });
    assert.equal(thrown.name, expected.typescript ?? expected, JSON.stringify(error));
    for (const name of also) assert.ok(thrown instanceof gudgeon[name], name);
    assert.equal(thrown.code, error.code);
  }
});

test("what users construct", () => {
  const protocol = new ProtocolError(-32001, "busy", { after: 1 });
  assert.deepEqual([protocol.code, protocol.message, protocol.data], [-32001, "busy", { after: 1 }]);
  const tool = new ToolError("kept", { k: 1 });
  assert.deepEqual([tool.text, tool.result.isError, tool.result.meta, tool.kind], ["kept", true, { k: 1 }, "tool"]);
  assert.equal(new ResourceNotFound("a://b").message, "Resource not found: a://b");
});

test("thrown values become the core's descriptions", () => {
  class Broke extends Error {}
  const cases = [
    [new ToolError("no", { k: 1 }), { kind: "tool", message: "no", meta: { k: 1 } }],
    [new ToolError("no"), { kind: "tool", message: "no" }],
    [new ProtocolError(-1, "m", [1]), { kind: "protocol", code: -1, message: "m", data: [1] }],
    [new ResourceNotFound("a://b", "gone"), { kind: "notFound", uri: "a://b", message: "gone" }],
    [new Declined("Sure?"), { kind: "declined", message: "Sure?" }],
    [Object.assign(new Cancelled("callTool was cancelled"), { name: "AbortError", stack: "AbortError: at" }), { kind: "exception", type: "AbortError", message: "callTool was cancelled", traceback: "AbortError: at" }],
    [new Cancelled("Sure?"), { kind: "dismissed", message: "Sure?" }],
    [new SchemaMismatch("a: wrong", "input"), { kind: "invalid", message: "a: wrong" }],
    [new NotSupported("no sampling", { code: -32021, data: { k: 1 } }), { kind: "protocol", code: -32021, message: "no sampling", data: { k: 1 } }],
    [
      new UrlElicitationRequired("sign in", { elicitations: [{ id: "e1", mode: "url", message: "Sign in", url: "https://a.example" }] }),
      { kind: "protocol", code: -32042, message: "sign in", data: { elicitations: [{ mode: "url", elicitationId: "e1", message: "Sign in", url: "https://a.example" }] } },
    ],
  ];
  for (const [thrown, told] of cases) assert.deepEqual(failure(thrown), told);
  for (const error of [new gudgeon.AuthError("of another server", { code: -32001 }), new ConnectFailed("secret", { code: -32000 })]) {
    assert.deepEqual([failure(error).kind, failure(error).type], ["exception", error.name]);
  }
  assert.deepEqual(failure(new Broke("poor"), { exposeErrors: [RangeError, Broke] }), { kind: "exposed", message: "poor" });
  assert.equal(failure(new Broke("poor"), { exposeErrors: [RangeError] }).kind, "exception");
});

test("anything else is an exception with its type, and the stacks of its causes", () => {
  class Broke extends Error {}
  const told = failure(new Broke("poor", { cause: new TypeError("why") }));
  assert.deepEqual([told.kind, told.type, told.message], ["exception", "Broke", "poor"]);
  assert.match(told.traceback, /poor[\s\S]*errors\.test\.mjs[\s\S]*caused by: TypeError: why/);
  assert.equal(failure(new RangeError("x")).type, "RangeError");
  assert.deepEqual(failure(new SchemaMismatch("bad", "output")), {
    kind: "exception", type: "invalid result", message: "the result does not fit the output schema: bad", traceback: "",
  });
  for (const [thrown, type, message] of [["text", "string", "text"], [undefined, "undefined", "undefined"], [Symbol("s"), "symbol", "Symbol(s)"]]) {
    assert.deepEqual(failure(thrown), { kind: "exception", type, message, traceback: message });
  }
});

test("the log has what was thrown, also if it is not an Error, is of another realm, or holds several", () => {
  assert.match(failure({ status: 503, body: { reason: "busy" } }).traceback, /status: 503[\s\S]*reason: 'busy'/);
  assert.deepEqual([failure({ message: "no luck", code: 3 }).type, failure({ message: "no luck", code: 3 }).message], ["object", "no luck"]);
  assert.match(failure({ message: "no luck", code: 3 }).traceback, /code: 3/);
  const foreign = runInNewContext("new TypeError('elsewhere')");
  assert.ok(!(foreign instanceof Error));
  assert.deepEqual([failure(foreign).type, failure(foreign).message], ["TypeError", "elsewhere"]);
  const several = failure(new AggregateError([new Error("first"), "second"], "all failed"));
  assert.match(several.traceback, /all failed[\s\S]*one of its errors: Error: first[\s\S]*one of its errors: second/);
});

test("what the call's own signal threw is a cancellation, another's is not", () => {
  const stop = new AbortController();
  const aborted = new DOMException("stopped", "AbortError");
  assert.equal(failure(aborted, { signal: stop.signal }).kind, "exception");
  stop.abort();
  assert.deepEqual(failure(stop.signal.reason, { signal: stop.signal }), { kind: "cancelled" });
  assert.deepEqual(failure(aborted, { signal: stop.signal }), { kind: "cancelled" });
  assert.equal(failure(new Error("other"), { signal: stop.signal }).kind, "exception");
});

test("nothing that is thrown can break the telling", () => {
  const cyclic = {};
  cyclic.self = cyclic;
  assert.deepEqual(failure(new ProtocolError(-5, "m", cyclic)), { kind: "protocol", code: -5, message: "m" });
  assert.deepEqual(failure(new ToolError("m", { n: NaN })), { kind: "tool", message: "m" });
  const hostile = new Proxy({}, { get() { throw new Error("no"); }, getPrototypeOf() { throw new Error("no"); } });
  for (const thrown of [Object.create(null), hostile, Object.assign(new Error("x"), { cause: null })]) {
    assert.equal(failure(thrown).kind, "exception");
  }
  const loop = new Error("loop");
  loop.cause = loop;
  assert.ok(failure(loop).traceback.length < 10_000);
});

test("names of other SDKs are answered with ours", async () => {
  const app = new gudgeon.Server("t");
  app.tool("report", {}, (_, ctx) => ctx.reportProgress(1));
  assert.throws(() => app.registerTool("add", {}, () => 1), /'Server' has no 'registerTool': here it is app\.tool\(name, options, handler\)/);
  for (const name of ["McpServer", "FastMCP"]) assert.throws(() => new gudgeon[name]("t"), /here it is Server/);
  const client = await gudgeon.Client.connect(app);
  assert.throws(() => client.getServerVersion(), /'Client' has no 'getServerVersion': here it is client\.server/);
  const { isError, text } = await client.callTool("report", {}, { throwOnError: false });
  assert.ok(isError && text.includes("TypeError"));
  await client.close();
  assert.deepEqual(Object.keys(app).filter((name) => name === "registerTool"), [], "they are not members that anybody lists");
});

test("debug shows what went wrong, and a result without what its schema promises is the server's fault", async () => {
  const output = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  const app = new gudgeon.Server("t", { debug: true });
  app.tool("crash", {}, () => {
    throw new RangeError("a secret");
  });
  app.tool("promised", { output }, () => new ToolResult("three"));
  app.tool("failed", { output }, () => new ToolResult("broken", { isError: true }));
  const client = await gudgeon.Client.connect(app);
  const text = async (name) => (await client.callTool(name, {}, { throwOnError: false })).text;
  assert.match(await text("crash"), /^RangeError: a secret\n[\s\S]*errors\.test\.mjs/);
  assert.match(await text("promised"), /^invalid result: the tool has an output schema, so its result needs structured content that fits it/);
  assert.equal(await text("failed"), "broken");
  await client.close();
});

test("invalid options of components are refused with their place", () => {
  const app = new gudgeon.Server("t");
  const said = {
    timeoutMs: [-1, /tool "t": timeoutMs must be a number of milliseconds, not -1/],
    concurrency: [0, /concurrency must be an integer from 1/],
    tags: ["abc", /tags must be a list of strings/],
    exposeErrors: [RangeError, /exposeErrors must be a list of classes/],
    visible: [5, /visible must be a function of the principal/],
    enabled: ["no", /enabled must be true or false/],
    icons: ["x", /icons must be a list of icons/],
    timout: [1, /tool "t": unknown option 'timout'; did you mean 'timeoutMs'\?$/],
  };
  for (const [name, [value, mend]] of Object.entries(said)) {
    assert.throws(() => app.tool("t", { [name]: value }, () => 1), (error) => error instanceof TypeError && mend.test(error.message));
  }
  assert.throws(() => app.resource("a://b", { cacheScope: "publc" }, () => ""), /resource "a:\/\/b": cacheScope must be "public" or "private", not "publc"/);
  assert.throws(() => app.resource("a://b", { ttlMs: -1 }, () => ""), /ttlMs must be a number of milliseconds/);
  assert.throws(() => app.prompt("p", { input: {} }, () => ""), /prompt "p": unknown option 'input'; did you mean 'args'\?$/);
});

test("options that do not exist are refused with what does their work", async () => {
  const refused = (name, advice) => (error) =>
    error instanceof TypeError && error.message.includes(`: unknown option '${name}'; `) && advice.test(error.message);
  assert.throws(() => new gudgeon.Server("t", { authenticate: () => {} }), refused("authenticate", /\{ auth \}.*\{ principal \}/));
  assert.throws(() => new gudgeon.Server("t", { stores: "memory" }), refused("stores", /did you mean 'store'/));
  const app = new gudgeon.Server("t", { auth: undefined });
  assert.throws(() => app.tool("t", { auth: () => {} }, () => 1), refused("auth", /scopes: \["books:write"\]/));
  assert.throws(() => app.resource("a://b", { auth: () => {} }, () => ""), refused("auth", /scopes/));
  assert.throws(() => app.prompt("p", { auth: () => {} }, () => ""), refused("auth", /scopes/));
  await assert.rejects(gudgeon.Client.connect(app, { authProvider: {} }), refused("authProvider", /did you mean 'auth'/));
  // No list offers them.
  const lists = [() => new gudgeon.Server("t", { x: 1 }), () => app.tool("t", { x: 1 }, () => 1), () => gudgeon.Client.connect(app, { x: 1 })];
  for (const list of lists) await assert.rejects(async () => list(), (error) => / it takes /.test(error.message) && !/\b(authenticate|authProvider)\b/.test(error.message));
});
