/** Types read off schemas; each `@ts-expect-error` line must fail. */
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { ask, jsonSchema } from "gudgeon";
import type { Input, Json, Output, Question, Schema, ToolOptions, Variables } from "gudgeon";
import * as v from "valibot";
import * as z from "zod";

import { same, schema } from "./same.js";

const zod = z.object({ a: z.number(), b: z.string().default("x") });
same<Output<typeof zod>, { a: number; b: string }>(true);
same<Input<typeof zod>, { a: number; b?: string | undefined }>(true);

const valibot = toStandardJsonSchema(v.object({ n: v.string(), d: v.optional(v.number(), 3) }));
same<Output<typeof valibot>, { n: string; d: number }>(true);

const ark = type({ id: "number", "year?": "string" });
same<Output<typeof ark>, { id: number; year?: string }>(true);

const typed = jsonSchema<{ deep: { list: number[] } }>({ type: "object" });
same<Output<typeof typed>, { deep: { list: number[] } }>(true);
same<Input<typeof typed>, { deep: { list: number[] } }>(true);

const literal = schema({
  type: "object",
  properties: {
    q: { type: "string" },
    n: { type: "integer" },
    sort: { enum: ["asc", "desc"] },
    kind: { const: "book" },
    tags: { type: "array", items: { type: "string" } },
    inner: { type: "object", properties: { on: { type: "boolean" } }, required: ["on"] },
    free: { type: "object" },
  },
  required: ["q", "tags", "inner"],
});
const read = (given: Output<typeof literal>): void => {
  same<typeof given.q, string>(true);
  same<typeof given.n, number | undefined>(true);
  same<typeof given.sort, "asc" | "desc" | undefined>(true);
  same<typeof given.kind, "book" | undefined>(true);
  same<typeof given.tags, string[]>(true);
  same<typeof given.inner.on, boolean>(true);
  same<typeof given.free, Record<string, unknown> | undefined>(true);
  // @ts-expect-error: no such property
  given.missing;
};
void read;

// A default is filled in before the handler runs; callers may leave it out.
const defaulted = schema({
  type: "object",
  properties: { n: { type: "integer", default: 1 }, inner: { type: "object", properties: { on: { type: "boolean", default: true } } } },
});
const readDefaults = (given: Output<typeof defaulted>): void => {
  same<typeof given.n, number>(true);
  same<NonNullable<typeof given.inner>["on"], boolean>(true);
  const call: Input<typeof defaulted> = {};
  void call;
};
void readDefaults;

const choices = schema({
  type: "object",
  properties: {
    name: { type: ["string", "null"] },
    id: { anyOf: [{ type: "string" }, { type: "integer" }, { const: false }] },
    one: { oneOf: [{ type: "object", properties: { a: { type: "string" } }, required: ["a"] }, { type: "null" }] },
    maybe: { type: ["object", "null"], properties: { a: { type: "string" } }, required: ["a"] },
    either: { type: "object", properties: { a: { type: "string" } }, anyOf: [{ required: ["a"] }, {}] },
    list: { type: "array" },
    lists: { type: ["array", "null"], items: { type: "number" } },
    untyped: { properties: { a: { type: "string" } }, required: ["a"] },
    any: {},
  },
  required: ["name", "id", "one", "maybe", "either", "list", "lists", "untyped", "any"],
});
const readChoices = (given: Output<typeof choices>): void => {
  same<typeof given.name, string | null>(true);
  same<typeof given.id, string | number | false>(true);
  const { one, maybe, either, untyped } = given;
  same<NonNullable<typeof one>["a"], string>(true);
  same<Extract<typeof one, null>, null>(true);
  same<NonNullable<typeof maybe>["a"], string>(true);
  same<Extract<typeof maybe, null>, null>(true);
  same<typeof either.a, string | undefined>(true);
  same<typeof given.list, unknown[]>(true);
  same<typeof given.lists, number[] | null>(true);
  same<typeof untyped.a, string>(true);
  same<typeof given.any, unknown>(true);
};
void readChoices;
same<Output<{ readonly type: readonly ["string", "null"] }>, string | null>(true);

same<Variables<"shelf://books/{id}">, { id: string } & unknown>(true);
const variables: Variables<"a://{+path}{?lang,page}{#x*,y:3}"> = { path: "", lang: "", page: "", x: "", y: "" };
same<keyof typeof variables, "path" | "lang" | "page" | "x" | "y">(true);
// @ts-expect-error: page is missing
const short: Variables<"a://{path}{?page}"> = { path: "" };
void short;

same<ReturnType<typeof askName>, Question<string>>(true);
function askName() {
  return ask.elicit("Name?", z.string());
}
// @ts-expect-error: bare valibot can't write JSON Schema
ask.elicit("Name?", v.string() satisfies Schema);
// @ts-expect-error: questions are made by ask.*
const forged: Question<string> = {};
void forged;

const json: Json = { a: [1, null, "x", { b: true }] };
// @ts-expect-error: JSON has no functions
const noJson: Json = { a: () => 1 };
void json, noJson;

// Options may be given as undefined, also under exactOptionalPropertyTypes.
const options: ToolOptions<undefined, undefined> = { title: undefined, timeoutMs: undefined, annotations: { readOnly: undefined } };
// @ts-expect-error: milliseconds are a number
const wrong: ToolOptions<undefined, undefined> = { timeoutMs: "5s" };
void options, wrong;
