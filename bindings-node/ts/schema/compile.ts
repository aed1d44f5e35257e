import { parseJson } from "../model/big-integers.js";
import { brandClass } from "../model/brand.js";
import { toJson } from "../model/json.js";
import { isPromise } from "../model/promises.js";
import { stringify } from "../model/stringify.js";
import type { Maybe } from "../model/types/components.js";
import type { TypedJsonSchema } from "../model/types/schema.js";
import type { StandardJsonSchemaProps, StandardResult, StandardSchemaProps } from "../model/types/standard-schema.js";
import { isObject } from "../model/values.js";
import { native } from "../native.js";
import { defaultsOf } from "./defaults.js";
import { withFlags, writerOptions } from "./pattern-flags.js";
import { type JsonObject, portable } from "./portable.js";

export type Profile = "portable" | "full";
/** Input: values before defaults and transforms. Output: values after them. */
export type Side = "input" | "output";

/** The word for a member of a value in errors. */
export type Noun = "argument" | "parameter" | "field" | "property";

/** Schemas of input that are not of arguments or params are those of forms. */
const NOUNS = { input: "field", output: "property" } as const satisfies Record<Side, Noun>;

export interface CompiledSchema {
  /** The JSON Schema, by which the core validates. */
  readonly json: JsonObject;
  /** The library's own validation, which also applies defaults and transforms; undefined for a plain JSON Schema. */
  readonly validate: Validate | undefined;
  /** Fills in the defaults of a plain JSON Schema; undefined where it has none, and for a library's schema. */
  readonly fill: ((value: unknown) => unknown) | undefined;
}

/** Returns the value in its final type, or a promise of it if the schema is async. Throws `SchemaMismatch`. */
export type Validate = (value: unknown) => Maybe<unknown>;

/** The error of a value that failed its schema; `problem` is the message of the schema's library. */
export class SchemaMismatch extends Error {
  constructor(
    message: string,
    readonly side: Side,
    readonly problem = message,
  ) {
    super(message);
    this.name = "SchemaMismatch";
  }
}
brandClass("SchemaMismatch", SchemaMismatch);

/** Gives a plain JSON Schema the type `T` of its values. */
export function jsonSchema<T>(schema: object): TypedJsonSchema<T> {
  return schema as TypedJsonSchema<T>;
}

/** Compiles a schema. `place` begins each error, such as `tool "add", input`. */
export function compileSchema(schema: unknown, place: string, profile: Profile = "portable", side: Side = "input", noun: Noun = NOUNS[side]): CompiledSchema {
  const standard = standardOf(schema);
  const full = standard ? writtenBy(schema, standard, place, side) : plain(schema, place);
  const json = profile === "portable" ? portable(full, place) : full;
  return { json, validate: standard && validateBy(standard, side, noun), fill: standard ? undefined : defaultsOf(json) };
}

/** Compiles the schema of arguments or params, which must describe an object. */
export function compileInput(schema: unknown, place: string, profile: Profile = "portable", noun: Noun = "argument"): CompiledSchema {
  const compiled = compileSchema(schema, place, profile, "input", noun);
  const { json } = compiled;
  const typed = native().NativeSchema.ofObject(stringify(json) ?? "");
  if (typed === null) {
    const found = typeof json["type"] === "string" ? `of type "${json["type"]}"` : "of any type";
    throw new TypeError(
      `${place}: the schema must describe an object, but it describes a value ${found}; ` +
        'wrap it, as in z.object({ value: … }) or { type: "object", properties: { value: … } }',
    );
  }
  return { ...compiled, json: parseJson(typed) as JsonObject };
}

/** Returns only the library's validation; undefined for a plain JSON Schema. */
export function validatorOf(schema: unknown, side: Side = "input"): Validate | undefined {
  const standard = standardOf(schema);
  return standard && validateBy(standard, side, NOUNS[side]);
}

type Standard = StandardSchemaProps & Partial<StandardJsonSchemaProps>;

/** Returns a Standard Schema's members. This is checked first, because arktype's types are functions and valibot's plain objects. */
function standardOf(schema: unknown): Standard | undefined {
  if ((typeof schema !== "object" && typeof schema !== "function") || schema === null) return undefined;
  const standard = (schema as { "~standard"?: unknown })["~standard"];
  return isObject(standard) && typeof standard["validate"] === "function" ? (standard as unknown as Standard) : undefined;
}

function writtenBy(schema: unknown, standard: Standard, place: string, side: Side): JsonObject {
  const { vendor, jsonSchema: writer } = standard;
  if (typeof writer?.[side] !== "function") {
    const hint = isMini(schema) ? MINI_HINT : (WRITER_HINTS[vendor] ?? WRITER_HINT);
    throw new TypeError(`${place}: this ${vendor} schema can't be written as JSON Schema; ${hint}`);
  }
  let json: JsonObject;
  try {
    json = writer[side]({ target: "draft-2020-12", libraryOptions: writerOptions(vendor) });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(
      `${place}: ${vendor} can't write the ${side} side of this schema as JSON Schema: ${why}; ` +
        `${/transform|morph/i.test(why) ? TRANSFORM_HINT : TYPE_HINT}, or give plain JSON Schema with jsonSchema<T>()`,
      { cause: error },
    );
  }
  const written = plain(json, place);
  withFlags(schema, vendor, written);
  return written;
}

/** Returns whether it is a schema of zod/mini, which does not write JSON Schema in any version. */
function isMini(schema: unknown): boolean {
  const traits = (schema as { _zod?: { traits?: unknown } })._zod?.traits;
  return traits instanceof Set && traits.has("ZodMiniType");
}

const MINI_HINT =
  'import from "zod" instead of "zod/mini", or give jsonSchema<z.infer<typeof schema>>(z.toJSONSchema(schema)), which checks ' +
  "by JSON Schema alone";
const WRITER_HINT = "use a version whose schemas have ~standard.jsonSchema, or give plain JSON Schema with jsonSchema<T>().";
const WRITER_HINTS: Readonly<Record<string, string>> = {
  zod: 'use zod 4.2 or later (npm install zod@latest, import from "zod").',
  valibot: "wrap it: toStandardJsonSchema(schema), from @valibot/to-json-schema.",
  arktype: "use arktype 2.1.28 or later.",
};
const TYPE_HINT = "use types that JSON has, such as an ISO 8601 string for a date";
const TRANSFORM_HINT = "declare the result of a transform, as in z.string().transform(Number).pipe(z.number())";

/** Returns a copy of a JSON Schema, so that later changes of the original have no effect. */
function plain(schema: unknown, place: string): JsonObject {
  if (!isObject(schema)) {
    const found = schema === null ? "null" : Array.isArray(schema) ? "a list" : typeof schema === "object" ? "an object" : `a ${typeof schema}`;
    throw new TypeError(
      `${place}: ${found} is not a schema; give a Standard Schema (zod, valibot, arktype) or a JSON Schema object`,
    );
  }
  const bare = Object.keys(schema).find((name) => standardOf(schema[name]) !== undefined);
  if (bare !== undefined) {
    throw new TypeError(`${place}: "${bare}" holds a schema, but the object around it is not a schema; wrap it, as in z.object({ ${bare}: … })`);
  }
  let written: string;
  try {
    written = toJson(schema, "the schema");
  } catch (error) {
    throw new TypeError(`${place}: ${(error as Error).message}; a JSON Schema is plain data, so use $ref for a recursive type`, { cause: error });
  }
  return parseJson(written) as JsonObject;
}

function validateBy(standard: Standard, side: Side, noun: Noun): Validate {
  const take = (result: StandardResult<unknown>): unknown => {
    if (result.issues === undefined) return result.value;
    throw new SchemaMismatch(result.issues.map((issue) => sentence(issue, noun)).join("; "), side);
  };
  return (value) => {
    const result = standard.validate(value);
    return isPromise(result) ? Promise.resolve(result).then(take) : take(result);
  };
}

/** Returns an issue as the core writes its own: `argument 'order.lines[0].sku': …`. arktype's messages begin with the path. */
function sentence({ message, path = [] }: NonNullable<StandardResult<unknown>["issues"]>[number], noun: Noun): string {
  const place = path
    .map((part) => (typeof part === "object" ? part.key : part))
    .map((key, index) => (typeof key === "number" ? `[${key}]` : index === 0 ? String(key) : `.${String(key)}`))
    .join("");
  if (place === "") return message;
  const problem = message.startsWith(`${place} `) ? message.slice(place.length + 1) : message;
  return `${noun} '${place}': ${problem}`;
}
