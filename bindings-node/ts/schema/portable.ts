import { parseJson } from "../model/big-integers.js";
import { stringify } from "../model/stringify.js";
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
    return parseJson(native().NativeSchema.portable(stringify(schema) ?? "")) as JsonObject;
  } catch (error) {
    throw new TypeError(`${place}: ${(error as Error).message}; ${HINT}`, { cause: error });
  }
}
