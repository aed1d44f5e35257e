import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { ask, Cancelled, Client, Declined, image, Server, text, user } from "gudgeon";
import * as v from "valibot";
import * as z from "zod";

import { native } from "../../bindings-node/dist/modules/native.js";
import { isQuestion, outcomeOf, questionsIn } from "../../bindings-node/dist/modules/model/questions.js";

import { closing } from "./closing.mjs";

const { NativeSchema } = native();
const accept = (content) => ({ action: "accept", content });
const formOf = (schema) => ask.elicit("Well?", schema).params.requestedSchema;

test("a plain type is asked as an object with the one property value, and comes back bare", () => {
  const sure = ask.elicit("Delete it?", z.boolean(), { key: "sure" });
  assert.deepEqual([sure.kind, sure.method, sure.key, sure.message], ["elicit", "elicitation/create", "sure", "Delete it?"]);
  assert.deepEqual(sure.params, {
    mode: "form",
    message: "Delete it?",
    requestedSchema: { type: "object", properties: { value: { type: "boolean" } }, required: ["value"] },
  });
  assert.equal(sure.read(accept({ value: true })), true);
  assert.equal(ask.elicit("Name?", z.string().default("x")).read(accept({})), "x");
  assert.deepEqual(formOf(z.string().default("x")), { type: "object", properties: { value: { type: "string", default: "x" } } });
  assert.equal(ask.elicit("N?", { type: "integer", default: 3 }).read(accept({})), 3);
});

test("an optional type needs no answer", () => {
  for (const schema of [z.boolean().optional(), toStandardJsonSchema(v.optional(v.boolean())), z.enum(["a"]).optional()]) {
    assert.equal(formOf(schema).required, undefined);
    assert.equal(ask.elicit("Well?", schema).read(accept({})), undefined);
  }
  const trimmed = z.string().transform((value) => value.trim());
  for (const schema of [z.boolean(), z.boolean().refine(async () => true), z.coerce.string(), trimmed]) {
    assert.deepEqual(formOf(schema).required, ["value"]);
  }
});

test("an object is asked as it is", () => {
  const question = ask.elicit("Who?", z.object({ name: z.string(), age: z.number().optional(), mail: z.email() }));
  const { requestedSchema } = question.params;
  assert.deepEqual(Object.keys(requestedSchema), ["type", "properties", "required"]);
  assert.deepEqual(requestedSchema.required, ["name", "mail"]);
  assert.equal(requestedSchema.properties.mail.format, "email");
  assert.deepEqual(question.read(accept({ name: "A", mail: "a@b.example" })), { name: "A", mail: "a@b.example" });
});

test("a form leaves out what forms can't express; the schema checks it in the answer", () => {
  const form = formOf(
    z.object({
      mail: z.email(),
      id: z.uuid(),
      day: z.iso.date(),
      page: z.url().meta({ examples: ["https://a.example"] }),
      count: z.int().positive().max(9),
      share: z.number().min(0).max(1),
    }),
  );
  const { count, ...rest } = form.properties;
  assert.deepEqual(rest, {
    mail: { type: "string", format: "email" },
    id: { type: "string" },
    day: { type: "string", format: "date" },
    page: { type: "string", format: "uri" },
    share: { type: "number", minimum: 0, maximum: 1 },
  });
  assert.deepEqual([count.minimum, count.maximum], [1, 9]);
  assert.equal(NativeSchema.formProblem("Well?", JSON.stringify(form)), null);
});

test("choices take the forms that the spec knows", () => {
  const choice = { type: "string", enum: ["a", "b"] };
  for (const schema of [z.enum(["a", "b"]), type("'a'|'b'"), z.union([z.literal("a"), z.literal("b")]), { enum: ["a", "b"] }]) {
    assert.deepEqual(formOf(schema).properties.value, choice);
  }
  assert.deepEqual(formOf({ oneOf: [{ const: "a", title: "A" }, { const: "b", title: "B" }] }).properties.value, {
    type: "string",
    oneOf: [{ const: "a", title: "A" }, { const: "b", title: "B" }],
  });
  assert.deepEqual(formOf(z.array(z.enum(["a", "b"]))).properties.value, { type: "array", items: choice });
});

test("what no form can ask fails where the question is made, in the core's words", () => {
  for (const [schema, problem] of [
    [z.object({ a: z.object({ b: z.string() }) }), 'its property "a" is an object, and a form asks for strings, numbers, booleans, choices and lists of choices'],
    [z.object({ a: z.array(z.string()) }), 'its property "a" is a list, which a form asks as a choice of several'],
    [z.object({ a: z.string().nullable() }), 'its property "a" is of several types, and a form asks for strings, '],
    [z.record(z.string(), z.string()), 'its property "value" is an object, and a form asks for strings, numbers, booleans'],
    [z.array(z.number()), 'its property "value" is a list, which a form asks as a choice of several'],
    [z.union([z.number(), z.string()]), 'its property "value" is of several types, and a form asks for strings, '],
    [z.string().regex(/^a/), 'its property "value" has "pattern", which forms do not support for a string'],
    [z.number().gt(0), 'its property "value" has "exclusiveMinimum", which forms do not support for a number'],
    [{ type: "string", format: "uuid" }, 'its property "value" has the format "uuid"'],
    [{ type: "object", properties: {}, required: ["a"] }, 'it requires "a", which is none of its properties'],
  ]) {
    // Also the second time, under another text.
    for (const message of ["Who?", 'The "other"?']) {
      const told = `the form ${JSON.stringify(message)} can't be asked: ${problem}`;
      assert.throws(() => ask.elicit(message, schema), (error) => error instanceof TypeError && error.message.startsWith(told));
    }
  }
});

test("what some revision can ask passes, and fails in others when it is asked, before anything is sent", async () => {
  const toppings = z.object({ toppings: z.array(z.enum(["ham", "olives"])) });
  const wanted = ask.elicit("Which toppings?", toppings);
  const app = new Server("asks");
  app.tool("pizza", {}, (_, ctx) => ctx.answer(wanted)?.toppings.join(" ") ?? wanted);
  app.tool("asked", {}, async (_, ctx) => {
    try {
      return (await ctx.elicit("Which toppings?", toppings)).toppings.join(" ");
    } catch (error) {
      assert.equal(error.name, "NotSupported");
      return error.message;
    }
  });
  app.tool("nested", {}, async (_, ctx) => {
    const told = { name: "TypeError", message: /^the form "What\?" can't be asked: its property "value" is a list, which / };
    await assert.rejects(ctx.elicit("What?", z.array(z.string())), told);
    return "not asked";
  });
  const shown = [];
  const onElicit = ({ message }) => (shown.push(message), { toppings: ["olives"] });
  for (const revision of ["2025-11-25", "2026-07-28"]) {
    await using(app, { revision, onElicit }, async (client) => {
      assert.equal((await client.callTool("pizza")).text, "olives");
      assert.equal((await client.callTool("asked")).text, "olives");
      assert.equal((await client.callTool("nested")).text, "not asked");
    });
  }
  await using(app, { revision: "2025-06-18", onElicit }, async (client) => {
    await assert.rejects(client.callTool("pizza"), { name: "ToolError" });
    const told = (await client.callTool("asked")).text;
    assert.ok(told.startsWith('the form "Which toppings?" can\'t be asked: its property "toppings" is a list of choices, '), told);
    assert.ok(told.includes("which 2025-06-18 does not support"), told);
  });
  assert.equal(shown.length, 4);
});

const using = (app, options, use) => closing(Client.connect(app, options), use);

test("the error of an invalid answer names the answer", async () => {
  assert.throws(() => ask.elicit("Age?", z.number().min(1)).read(accept({ value: 0 })), {
    name: "SchemaMismatch",
    message: /^the answer to elicit\("Age\?"\): /,
  });
  const later = z.number().refine(async (n) => n > 1, "too young");
  for (const message of ["Age?", "Really?"]) {
    const told = { message: `the answer to elicit("${message}"): too young` };
    await assert.rejects(ask.elicit(message, later).read(accept({ value: 0 })), told);
  }
});

test("a declined question throws, or is an outcome", async () => {
  const sure = ask.elicit("Sure?", z.boolean());
  assert.throws(() => sure.read({ action: "decline" }), (error) => error instanceof Declined && error.message === "Sure?");
  assert.throws(() => sure.read({ action: "cancel" }), Cancelled);
  assert.throws(() => sure.read({}), Cancelled);
  assert.deepEqual(outcomeOf(sure, { action: "decline" }), { action: "decline" });
  assert.deepEqual(outcomeOf(sure, { action: "cancel" }), { action: "cancel" });
  assert.deepEqual(outcomeOf(sure, accept({ value: false })), { action: "accept", value: false });
  const later = ask.elicit("N?", z.number().refine(async () => true));
  assert.deepEqual(await outcomeOf(later, accept({ value: 2 })), { action: "accept", value: 2 });
});

test("valibot's schemas are asked and read as well", () => {
  const sure = ask.elicit("Sure?", toStandardJsonSchema(v.boolean()));
  assert.deepEqual(sure.params.requestedSchema, { type: "object", properties: { value: { type: "boolean" } }, required: ["value"] });
  assert.equal(sure.read(accept({ value: false })), false);
  const person = v.object({ name: v.pipe(v.string(), v.minLength(2)), age: v.optional(v.pipe(v.number(), v.integer()), 30), side: v.picklist(["a", "b"]) });
  const who = ask.elicit("Who?", toStandardJsonSchema(person));
  const { properties, required } = who.params.requestedSchema;
  assert.deepEqual([required, properties.name.minLength, properties.age.default], [["name", "side"], 2, 30]);
  assert.deepEqual(properties.side, { type: "string", enum: ["a", "b"] });
  assert.deepEqual(who.read(accept({ name: "Ada", side: "b" })), { name: "Ada", age: 30, side: "b" });
  assert.throws(() => who.read(accept({ name: "A", side: "b" })), /^SchemaMismatch: the answer to elicit\("Who\?"\): field 'name': Invalid length/);
  assert.throws(() => ask.elicit("Sure?", v.boolean()), /this valibot schema can't be written as JSON Schema; wrap it: toStandardJsonSchema\(schema\)/);
});

test("a question has a text, a key that is one, and options that there are", () => {
  for (const url of ["example.org/in", "/in", "https://", 5, undefined]) {
    assert.throws(() => ask.elicitUrl("Sign in", url), /^TypeError: elicitUrl takes an absolute URL such as "https:\/\/example\.org\/in", not /);
  }
  assert.throws(() => ask.sample("Hi", { maxTokenz: 5 }), /^TypeError: sample\(\): unknown option 'maxTokenz'; did you mean 'maxTokens'\?$/);
  assert.throws(() => ask.elicit("", z.boolean()), /^TypeError: a question needs a message, a non-empty string, not ""/);
  assert.throws(() => ask.elicitUrl(undefined, "https://a.example"), /^TypeError: a question needs a message, a non-empty string, not undefined/);
  for (const key of ["", 5]) assert.throws(() => ask.roots({ key }), /^TypeError: key must be a non-empty string that names the question, not /);
  assert.equal(ask.sample("", { key: "k" }).key, "k");
});

test("a page to visit, roots", () => {
  const page = ask.elicitUrl("Sign in", "https://a.example");
  assert.deepEqual(page.params, { mode: "url", message: "Sign in", url: "https://a.example" });
  assert.equal(page.read({ action: "accept", elicitationId: "e1" }), "e1");
  assert.throws(() => page.read({ action: "decline" }), Declined);
  const roots = ask.roots({ key: "r" });
  assert.deepEqual([roots.method, roots.params, roots.key], ["roots/list", {}, "r"]);
  assert.deepEqual(roots.read({ roots: [{ uri: "file:///a", name: "a" }, 5] }), [{ uri: "file:///a", name: "a" }]);
  assert.deepEqual(roots.read({}), []);
});

test("sampling, with every option", () => {
  const question = ask.sample(["Hi", user([text("Look"), image(new Uint8Array([1]), "png")])], {
    maxTokens: 5, system: "s", temperature: 0, stop: ["."], models: "small", costPriority: 1, toolChoice: "none",
    tools: [{ name: "add", inputSchema: { type: "object" }, annotations: { readOnly: true }, meta: { k: 1 } }],
  });
  assert.deepEqual(question.params, {
    messages: [
      { role: "user", content: { type: "text", text: "Hi" } },
      { role: "user", content: [{ type: "text", text: "Look" }, { type: "image", data: "AQ==", mimeType: "image/png" }] },
    ],
    maxTokens: 5,
    systemPrompt: "s",
    temperature: 0,
    stopSequences: ["."],
    modelPreferences: { hints: [{ name: "small" }], costPriority: 1 },
    tools: [{ name: "add", inputSchema: { type: "object" }, annotations: { readOnlyHint: true }, _meta: { k: 1 } }],
    toolChoice: { mode: "none" },
  });
  assert.deepEqual(Object.keys(ask.sample("Hi").params), ["messages", "maxTokens"]);
  assert.throws(() => ask.sample([{ role: "user" }]), /message 0 must be a string or made by user\(\)/);
  const answer = question.read({ role: "assistant", content: { type: "text", text: "Hello" }, model: "m", stopReason: "endTurn" });
  assert.deepEqual([answer.role, answer.text, answer.content.length, answer.model, answer.stopReason], ["assistant", "Hello", 1, "m", "endTurn"]);
});

test("a handler may return one question or a list of them, never both with an answer", () => {
  const [a, b] = [ask.elicit("A?", z.string()), ask.roots()];
  assert.ok(isQuestion(a) && !isQuestion({ ...a }));
  assert.deepEqual(questionsIn(a), [a]);
  assert.deepEqual(questionsIn([a, b]), [a, b]);
  for (const value of [undefined, "x", [], ["x"], { a }]) assert.equal(questionsIn(value), undefined);
  assert.throws(() => questionsIn([a, "x"]), /the result\[1\] is not a question/);
});
