import { brandClass } from "./brand.js";
import { isObject } from "./content.js";
import { defaultsOf } from "./defaults.js";
import { toJson } from "./json.js";
import { follow, portable, type JsonObject } from "./portable.js";
import type { StandardJsonSchemaProps, StandardResult, StandardSchemaProps } from "./types/standard-schema.js";
import type { Maybe, TypedJsonSchema } from "./types.js";

export type Profile = "portable" | "full";
/** Input: what may be given. Output: what comes out after defaults and transforms. */
export type Side = "input" | "output";

/** The word for a member of a value in errors. */
export type Noun = "argument" | "parameter" | "field" | "property";

/** Schemas of input that are not of arguments or params are those of forms. */
const NOUNS = { input: "field", output: "property" } as const satisfies Record<Side, Noun>;

export interface CompiledSchema {
  /** For the core, which checks by it. */
  readonly json: JsonObject;
  /** The library's own check, which also fills in defaults and transforms; undefined for a plain JSON Schema. */
  readonly validate: Validate | undefined;
  /** Fills in the defaults of a plain JSON Schema; undefined where it has none, and for a library's schema. */
  readonly fill: ((value: unknown) => unknown) | undefined;
}

/** Gives the value in its final type, at once where the schema is synchronous; throws `SchemaMismatch`. */
export type Validate = (value: unknown) => Maybe<unknown>;

/** A value that the library's own check refused; `problem` is what it said. */
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

/** A plain JSON Schema that stands for the type `T`. */
export function jsonSchema<T>(schema: object): TypedJsonSchema<T> {
  return schema as TypedJsonSchema<T>;
}

/** `place` begins every error: `tool "add", input`. */
export function compileSchema(schema: unknown, place: string, profile: Profile = "portable", side: Side = "input", noun: Noun = NOUNS[side]): CompiledSchema {
  const standard = standardOf(schema);
  const full = standard ? writtenBy(schema, standard, place, side) : plain(schema, place);
  const json = profile === "portable" ? portable(full, place) : full;
  return { json, validate: standard && validateBy(standard, side, noun), fill: standard ? undefined : defaultsOf(json) };
}

/** The same for arguments and params, which are always an object. */
export function compileInput(schema: unknown, place: string, profile: Profile = "portable", noun: Noun = "argument"): CompiledSchema {
  const compiled = compileSchema(schema, place, profile, "input", noun);
  const { json } = compiled;
  if (!describesObject(json, json, 0)) {
    const found = typeof json["type"] === "string" ? `of type "${json["type"]}"` : "of any type";
    throw new TypeError(
      `${place}: the schema must describe an object, and this one takes a value ${found}. ` +
        'Wrap it, as in z.object({ value: … }) or { type: "object", properties: { value: … } }.',
    );
  }
  return json["type"] === "object" ? compiled : { ...compiled, json: { type: "object", ...json } };
}

/** Only the check, where JSON Schema is not needed; undefined for a plain JSON Schema. */
export function validatorOf(schema: unknown, side: Side = "input"): Validate | undefined {
  const standard = standardOf(schema);
  return standard && validateBy(standard, side, NOUNS[side]);
}

type Standard = StandardSchemaProps & Partial<StandardJsonSchemaProps>;

/** Looked for before anything else: arktype's types are functions, and valibot's are plain objects. */
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
    json = writer[side]({ target: "draft-2020-12" });
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new TypeError(
      `${place}: ${vendor} can't write this schema's ${side} side as JSON Schema: ${why}. ` +
        `${/transform|morph/i.test(why) ? TRANSFORM_MEND : TYPE_MEND} Or give plain JSON Schema with jsonSchema<T>().`,
      { cause: error },
    );
  }
  return plain(json, place);
}

/** zod/mini, whose objects do not write JSON Schema in any version. */
function isMini(schema: unknown): boolean {
  const traits = (schema as { _zod?: { traits?: unknown } })._zod?.traits;
  return traits instanceof Set && traits.has("ZodMiniType");
}

const MINI_HINT =
  'import from "zod" instead of "zod/mini", or give jsonSchema<z.infer<typeof schema>>(z.toJSONSchema(schema)), which checks ' +
  "by JSON Schema alone.";
const WRITER_HINT = "use a version whose schemas have ~standard.jsonSchema, or give plain JSON Schema with jsonSchema<T>().";
const WRITER_HINTS: Readonly<Record<string, string>> = {
  zod: 'use zod 4.2 or later (npm install zod@latest, import from "zod").',
  valibot: "wrap it: toStandardJsonSchema(schema), from @valibot/to-json-schema.",
  arktype: "use arktype 2.1.28 or later.",
};
const TYPE_MEND = "Use types that JSON has, such as an ISO 8601 string for a date.";
const TRANSFORM_MEND = "Say what a transform gives, as in z.string().transform(Number).pipe(z.number()).";

/** A JSON Schema literal, copied so that later changes to it change nothing. */
function plain(schema: unknown, place: string): JsonObject {
  if (!isObject(schema)) {
    const found = schema === null ? "null" : Array.isArray(schema) ? "a list" : typeof schema === "object" ? "an object" : `a ${typeof schema}`;
    throw new TypeError(
      `${place}: ${found} is no schema. Give a Standard Schema (zod, valibot, arktype) or a JSON Schema object.`,
    );
  }
  const bare = Object.keys(schema).find((name) => standardOf(schema[name]) !== undefined);
  if (bare !== undefined) {
    throw new TypeError(`${place}: "${bare}" holds a schema, but the object around it is none. Wrap it, as in z.object({ ${bare}: … }).`);
  }
  let written: string;
  try {
    written = toJson(schema, "the schema");
  } catch (error) {
    throw new TypeError(`${place}: ${(error as Error).message}. A JSON Schema is plain data; for a recursive type use $ref.`, { cause: error });
  }
  return JSON.parse(written) as JsonObject;
}

/** Is every value that it lets through an object? */
function describesObject(schema: unknown, root: JsonObject, depth: number): boolean {
  if (!isObject(schema) || depth > 32) return false;
  const { type, $ref: reference, anyOf, oneOf, allOf } = schema;
  if (type !== undefined) return type === "object";
  const inner = (one: unknown) => describesObject(one, root, depth + 1);
  if (typeof reference === "string" && inner(reference === "#" ? undefined : follow(root, reference))) return true;
  if (Array.isArray(allOf) && allOf.some(inner)) return true;
  const choices = anyOf ?? oneOf;
  if (Array.isArray(choices)) return choices.length > 0 && choices.every(inner);
  return isObject(schema["properties"]);
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

export function isPromise(value: unknown): value is Promise<unknown> {
  return isObject(value) && typeof value["then"] === "function";
}
