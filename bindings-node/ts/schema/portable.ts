import { native } from "../native.js";

export type JsonObject = Record<string, unknown>;

const HINT =
  'many hosts can\'t read such schemas: limit the depth, leave the inner type open, or make the server with schemaProfile: "full"';

/**
 * Returns the schema in a form that every host reads: `$ref` is replaced by its target, `$defs` and the default `$schema`
 * are removed, and unions with null simplified. Throws a TypeError that names the place where the schema is cyclic.
 */
export function portable(schema: JsonObject, place: string): JsonObject {
  try {
    return JSON.parse(native().NativeSchema.portable(JSON.stringify(schema))) as JsonObject;
  } catch (error) {
    throw new TypeError(`${place}: ${(error as Error).message}; ${HINT}`, { cause: error });
  }
}

/** Returns the target of a `$ref` of the form `#/a/b`. */
export function follow(root: JsonObject, reference: string): JsonObject | undefined {
  let at: unknown = root;
  for (const part of reference.split("/").slice(1)) {
    const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as JsonObject)[name];
  }
  return isSchema(at) ? at : undefined;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function isSchema(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
