import { parseJson } from "../model/big-integers.js";
import { stringify } from "../model/stringify.js";
import { isObject } from "../model/values.js";
import { native } from "../native.js";
import type { JsonObject } from "./portable.js";

/** Beyond this depth nothing is filled in: defaults of a schema that refers to itself would never end. */
const MAX_DEPTH = 32;

/**
 * Returns a function that fills in the defaults of a plain JSON Schema, in objects and lists at any depth, and leaves the
 * value it was given as it was; undefined where the schema has none. `anyOf`, `oneOf` and `allOf` are not looked into.
 */
export function defaultsOf(json: JsonObject): ((value: unknown) => unknown) | undefined {
  if (!hasDefault(json)) return undefined;
  const targets = new Map<string, unknown>();
  const follow = (reference: string): unknown => {
    if (!targets.has(reference)) {
      targets.set(reference, parseJson(native().NativeSchema.target(stringify(json) ?? "", reference) ?? "null"));
    }
    return targets.get(reference);
  };
  return (value) => filled(json, value, follow, 0);
}

/** Returns whether the schema contains the keyword, or a property of that name, which is harmless. */
function hasDefault(schema: unknown): boolean {
  if (Array.isArray(schema)) return schema.some(hasDefault);
  return isObject(schema) && ("default" in schema || Object.values(schema).some(hasDefault));
}

function filled(schema: unknown, value: unknown, follow: (reference: string) => unknown, depth: number): unknown {
  if (!isObject(schema) || depth > MAX_DEPTH) return value;
  const { $ref: reference, properties, items } = schema;
  const given = typeof reference === "string" ? filled(follow(reference), value, follow, depth + 1) : value;
  if (Array.isArray(given)) return isObject(items) ? given.map((one) => filled(items, one, follow, depth + 1)) : given;
  if (!isObject(given) || !isObject(properties)) return given;
  const made = { ...given };
  for (const [name, property] of Object.entries(properties)) {
    const held = Object.hasOwn(given, name) ? given[name] : defaultOf(property);
    if (held !== undefined) set(made, name, filled(property, held, follow, depth + 1));
  }
  return made;
}

/** A copy, which the handler may change. */
function defaultOf(property: unknown): unknown {
  return isObject(property) && "default" in property ? structuredClone(property["default"]) : undefined;
}

/** As JSON.parse does: `__proto__` is a name like any other. */
function set(target: object, name: string, value: unknown): void {
  Object.defineProperty(target, name, { value, writable: true, enumerable: true, configurable: true });
}
