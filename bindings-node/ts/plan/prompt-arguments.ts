import { parseJson } from "../model/big-integers.js";
import { isObject } from "../model/values.js";
import { SchemaMismatch } from "../schema/compile.js";
import type { JsonObject } from "../schema/portable.js";

/** An argument of a prompt, as listed to clients. */
export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required: boolean;
}

/** Returns the arguments that a schema compiled by `compileInput` describes; `place` begins the error. */
export function promptArguments(json: JsonObject, place: string): PromptArgument[] {
  const properties = json["properties"];
  if (!isObject(properties)) {
    throw new TypeError(`${place}: the schema of a prompt's arguments must describe an object with named properties, as in z.object({ code: z.string() })`);
  }
  const required = Array.isArray(json["required"]) ? json["required"] : [];
  return Object.entries(properties).map(([name, property]) => {
    const { title, description } = isObject(property) ? property : {};
    return {
      name,
      ...(typeof title === "string" && { title }),
      ...(typeof description === "string" && { description }),
      required: required.includes(name),
    };
  });
}

/** Decodes prompt arguments, which are strings on the wire: for other types they are read as JSON, `"3"` as 3. */
export function decodeTexts(json: JsonObject, given: Readonly<Record<string, string>>): Record<string, unknown> {
  const properties = isObject(json["properties"]) ? json["properties"] : {};
  return Object.fromEntries(
    Object.entries(given).map(([name, text]) => {
      const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
      const type = isObject(property) ? property["type"] : undefined;
      return [name, typeof type === "string" && type !== "string" ? decode(name, text, type) : text];
    }),
  );
}

function decode(name: string, text: string, type: string): unknown {
  try {
    const value = parseJson(text);
    if (CHECKS[type]?.(value) ?? true) return value;
  } catch {
    // Invalid JSON is reported below.
  }
  throw new SchemaMismatch(`argument '${name}': expected ${TYPES[type] ?? type}, got ${JSON.stringify(text)}`, "input");
}

const TYPES: Readonly<Record<string, string>> = {
  integer: "an integer", number: "a number", boolean: "true or false", null: "null", array: "a list", object: "an object",
};

const CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  integer: (value) => Number.isInteger(value) || typeof value === "bigint",
  number: (value) => typeof value === "number" || typeof value === "bigint",
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};
