import assert from "node:assert/strict";
import { test } from "node:test";

import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { scope, type } from "arktype";
import { Client, jsonSchema, Server } from "gudgeon";
import * as v from "valibot";
import * as z from "zod";
import * as mini from "zod/mini";

import { compileInput, compileSchema, SchemaMismatch, validatorOf } from "../../bindings-node/dist/modules/schema/compile.js";

import { closing } from "./closing.mjs";

const PLACE = 'tool "add", input';

test("zod: written, checked, defaults and transforms applied, at once", () => {
  const { json, validate } = compileInput(z.object({ a: z.number(), b: z.number().default(1), c: z.string().transform(Number) }), PLACE);
  assert.deepEqual(json, {
    type: "object",
    properties: { a: { type: "number" }, b: { default: 1, type: "number" }, c: { type: "string" } },
    required: ["a", "c"],
  });
  assert.deepEqual(validate({ a: 2, c: "3" }), { a: 2, b: 1, c: 3 });
});

test("valibot through toStandardJsonSchema", () => {
  const { json, validate } = compileInput(toStandardJsonSchema(v.object({ n: v.string(), d: v.optional(v.number(), 3) })), PLACE);
  assert.deepEqual(json.required, ["n"]);
  assert.deepEqual(validate({ n: "x" }), { n: "x", d: 3 });
});

test("arktype, whose types are functions", () => {
  const { json, validate } = compileInput(type({ id: "number", "year?": "string", d: "number = 3" }), PLACE);
  assert.deepEqual(json.required, ["id"]);
  assert.deepEqual(validate({ id: 1 }), { id: 1, d: 3 });
  assert.throws(() => validate({ id: "x" }), { name: "SchemaMismatch", message: "argument 'id': must be a number (was a string)" });
});

test("plain JSON Schema is copied unchanged, and the core checks it", () => {
  const given = { type: "object", properties: { q: { type: "string" } }, required: ["q"] };
  const compiled = compileInput(given, PLACE);
  given.properties.q.type = "number";
  assert.deepEqual(compiled.json, { type: "object", properties: { q: { type: "string" } }, required: ["q"] });
  assert.equal(compiled.validate, undefined);
  assert.equal(validatorOf(given), undefined);
  const typed = jsonSchema({ type: "object" });
  assert.deepEqual(compileInput(typed, PLACE).json, { type: "object" });
});

test("asynchronous checks give a promise, others do not", async () => {
  const later = z.object({ name: z.string().refine(async (name) => name !== "taken", "is taken") });
  const { validate } = compileInput(later, PLACE);
  const pending = validate({ name: "free" });
  assert.ok(pending instanceof Promise);
  assert.deepEqual(await pending, { name: "free" });
  await assert.rejects(validate({ name: "taken" }), { name: "SchemaMismatch", message: "argument 'name': is taken" });
});

test("a mismatch names every place and its side", () => {
  const { validate } = compileSchema(z.object({ a: z.object({ b: z.array(z.number()) }), c: z.string() }), PLACE);
  assert.throws(
    () => validate({ a: { b: [1, "x"] } }),
    (error) => error instanceof SchemaMismatch && error.side === "input" && /^field 'a\.b\[1\]': .*; field 'c': /.test(error.message),
  );
});

test("the output side is what comes out", () => {
  const schema = z.object({ n: z.string().transform(Number).pipe(z.number()), d: z.number().default(1) });
  const { json } = compileSchema(schema, 'tool "add", output', "portable", "output");
  assert.deepEqual([json.properties.n.type, json.required], ["number", ["n", "d"]]);
  assert.throws(
    () => compileSchema(z.string().transform(Number), 'tool "add", output', "portable", "output"),
    /^TypeError: tool "add", output: zod can't write the output side of this schema as JSON Schema: Transforms cannot .*\.pipe\(z\.number\(\)\)/,
  );
  assert.throws(
    () => compileSchema(z.object({ at: z.date() }), 'tool "add", output', "portable", "output"),
    /output side of this schema as JSON Schema: Date cannot .*use types that JSON has, such as an ISO 8601 string for a date/,
  );
});

test("a schema that can't be written fails with the fix", () => {
  const old = (vendor) => ({ "~standard": { version: 1, vendor, validate: (value) => ({ value }) } });
  const cases = [
    [old("zod"), /^tool "add", input: this zod schema can't be written as JSON Schema; use zod 4\.2 or later/],
    [mini.object({ n: mini.string() }), /this zod schema can't be written as JSON Schema; import from "zod" instead of "zod\/mini", or give jsonSchema<z\.infer<typeof schema>>\(z\.toJSONSchema\(schema\)\)/],
    [v.object({ n: v.string() }), /this valibot schema .* toStandardJsonSchema\(schema\), from @valibot\/to-json-schema/],
    [old("arktype"), /use arktype 2\.1\.28 or later/],
    [old("acme"), /this acme schema .* ~standard\.jsonSchema/],
    [z.object({ at: z.date() }), /zod can't write the input side of this schema as JSON Schema: Date cannot .*ISO 8601/],
    [{ a: z.string() }, /"a" holds a schema, but the object around it is not a schema; wrap it, as in z\.object\(\{ a: … \}\)/],
    [() => 1, /a function is not a schema; give a Standard Schema \(zod, valibot, arktype\) or a JSON Schema object/],
    ["string", /a string is not a schema/],
    [null, /null is not a schema/],
    [[], /a list is not a schema/],
    [{ type: "object", default: new Map() }, /the schema\.default is a Map/],
  ];
  for (const [schema, message] of cases) assert.throws(() => compileInput(schema, PLACE), { name: "TypeError", message });
});

test("an input must describe an object", () => {
  for (const schema of [z.string(), z.array(z.number()), z.any(), {}, { type: "string" }, z.union([z.object({}), z.string()])]) {
    assert.throws(() => compileInput(schema, PLACE), /^TypeError: tool "add", input: the schema must describe an object, .*wrap it/);
  }
  const union = z.discriminatedUnion("kind", [z.object({ kind: z.literal("a") }), z.object({ kind: z.literal("b") })]);
  for (const schema of [union, { properties: {} }, z.intersection(z.object({ a: z.string() }), z.object({ b: z.string() })), z.record(z.string(), z.number())]) {
    assert.equal(compileInput(schema, PLACE).json.type, "object");
  }
});

test("portable: no $ref, no $defs, no default $schema; the same every time", () => {
  const address = z.object({ city: z.string() }).meta({ id: "Address" });
  const make = () => compileInput(z.object({ home: address, work: address.optional() }), PLACE).json;
  const inlined = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
  assert.deepEqual(make(), { type: "object", properties: { home: inlined, work: inlined }, required: ["home"] });
  assert.equal(JSON.stringify(make()), JSON.stringify(make()));
  assert.ok("$defs" in compileInput(z.object({ home: address }), PLACE, "full").json);
});

test("portable: references of every form, and the keywords beside them", () => {
  const { json } = compileInput(
    {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      type: "object",
      $defs: { "a/b": { type: "string", title: "T" }, anchored: { $anchor: "here", type: "integer" } },
      properties: {
        pointer: { $ref: "#/$defs/a~1b", description: "D" },
        anchor: { $ref: "#here" },
        narrowed: { $ref: "#/$defs/anchored", minimum: 3 },
        $ref: { type: "string", enum: ["$ref"] },
        data: { const: { $ref: "#/$defs/a~1b" }, default: { $defs: 1 } },
      },
    },
    PLACE,
  );
  assert.deepEqual(json, {
    type: "object",
    properties: {
      pointer: { type: "string", title: "T", description: "D" },
      anchor: { type: "integer" },
      narrowed: { minimum: 3, allOf: [{ type: "integer" }] },
      $ref: { type: "string", enum: ["$ref"] },
      data: { const: { $ref: "#/$defs/a~1b" }, default: { $defs: 1 } },
    },
  });
});

test("portable: another dialect keeps its name and its rules; foreign references stay for the core to refuse", () => {
  const old = compileInput(
    { $schema: "http://json-schema.org/draft-07/schema#", type: "object", definitions: { n: { type: "number" } }, properties: { a: { $ref: "#/definitions/n", minimum: 1 } } },
    PLACE,
  );
  assert.deepEqual(old.json, { $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { a: { type: "number" } } });
  const foreign = { type: "object", $defs: { n: {} }, properties: { a: { $ref: "https://example.org/x.json" }, b: { $ref: "#/$defs/missing" } } };
  assert.deepEqual(compileInput(foreign, PLACE).json, foreign);
});

test("a cyclic schema fails at once with the place and the fix; the full profile keeps it", () => {
  const Node = z.object({ name: z.string(), get kids() { return z.array(Node); } });
  const { node } = scope({ node: { name: "string", kids: "node[]" } }).export();
  const plain = { type: "object", properties: { up: { $ref: "#" } } };
  for (const schema of [Node, node, plain]) {
    assert.throws(() => compileInput(schema, PLACE), /^TypeError: tool "add", input: the schema is cyclic \(.*#.*\); .*schemaProfile: "full"/);
    assert.equal(compileInput(schema, PLACE, "full").json.type, "object");
  }
  const itself = { type: "object", properties: {} };
  itself.properties.up = itself;
  assert.throws(() => compileInput(itself, PLACE), /the schema\.properties\.up contains itself \(a cycle\).* use \$ref/);
});

test("a schema that would grow without bound when inlined fails", () => {
  const $defs = { d0: { type: "string" } };
  for (let i = 1; i <= 30; i++) $defs[`d${i}`] = { anyOf: [{ $ref: `#/$defs/d${i - 1}` }, { $ref: `#/$defs/d${i - 1}` }] };
  assert.throws(() => compileInput({ type: "object", $defs, properties: { a: { $ref: "#/$defs/d30" } } }, PLACE), /grows past 20000 parts/);
});

test("a property named __proto__ stays a property", () => {
  const { json } = compileInput(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"}}}'), PLACE);
  assert.equal(JSON.stringify(json), '{"type":"object","properties":{"__proto__":{"type":"string"}}}');
});

test("an argument outside its list is refused with the values", async () => {
  const app = new Server("t");
  const colour = { enum: ["red", "blue"] };
  const shape = { anyOf: ["circle", "square"].map((kind) => ({ type: "object", properties: { kind: { const: kind } }, required: ["kind"] })) };
  app.tool("paint", { input: { type: "object", properties: { colour, shape } } }, () => "ok");
  await closing(Client.connect(app), async (client) => {
    await assert.rejects(client.callTool("paint", { colour: "green" }), /argument 'colour': expected "red" or "blue", got "green"$/);
    await assert.rejects(client.callTool("paint", { shape: { kind: "blob" } }), /argument 'shape\.kind': expected "circle" or "square", got "blob"$/);
  });
});

test("flags are part of a published pattern, or it has none", async () => {
  const properties = (schema) => compileInput(schema, PLACE).json.properties;
  const found = properties(
    z.object({
      plain: z.string().regex(/^a$/u),
      case: z.string().regex(/^a$/i).optional(),
      several: z.string().regex(/^a/i).regex(/b$/),
      reference: z.string().regex(/^(a)\1$/i),
      list: z.array(z.string().regex(/a.b/s)),
    }),
  );
  assert.deepEqual(found, {
    plain: { type: "string", pattern: "^a$" },
    case: { type: "string", pattern: "^[aA]$" },
    several: { type: "string", allOf: [{ pattern: "^[aA]" }, { pattern: "b$" }] },
    reference: { type: "string" },
    list: { type: "array", items: { type: "string", pattern: "a[\\s\\S]b" } },
  });
  assert.deepEqual(properties(type({ case: /^a$/i, plain: "/^b$/" })), {
    case: { type: "string", pattern: "^[aA]$" },
    plain: { type: "string", pattern: "^b$" },
  });

  const app = new Server("flags");
  app.tool("check", { input: z.object({ id: z.string().regex(/^id-(x)\1$/i), name: z.string().regex(/^ada$/i) }) }, ({ id, name }) => `${id} ${name}`);
  await closing(Client.connect(app), async (client) => {
    assert.equal((await client.callTool("check", { id: "ID-Xx", name: "Ada" })).text, "ID-Xx Ada");
    await assert.rejects(client.callTool("check", { id: "ID-Xy", name: "Ada" }), /argument 'id'/);
  });
});
