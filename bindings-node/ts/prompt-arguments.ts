import { isObject } from "./content.js";
import type { JsonObject } from "./portable.js";
import { SchemaMismatch } from "./schema.js";

/** A prompt's arguments as they are listed. */
export interface PromptArgument {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly required: boolean;
}

/** The properties of a schema, as `compileInput` gives it; `place` begins the error. */
export function promptArguments(json: JsonObject, place: string): PromptArgument[] {
  const properties = json["properties"];
  if (!isObject(properties)) {
    throw new TypeError(`${place}: a prompt's arguments are an object with named properties, as in z.object({ code: z.string() })`);
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

/** Prompt arguments come as texts: those of another type are read as JSON, `"3"` as 3. */
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
    const value: unknown = JSON.parse(text);
    if (CHECKS[type]?.(value) ?? true) return value;
  } catch {
    // Not JSON at all: told below.
  }
  throw new SchemaMismatch(`${name}: ${JSON.stringify(text)} is not of type ${type}`, "input");
}

const CHECKS: Readonly<Record<string, (value: unknown) => boolean>> = {
  integer: Number.isInteger,
  number: (value) => typeof value === "number",
  boolean: (value) => typeof value === "boolean",
  null: (value) => value === null,
  array: Array.isArray,
  object: isObject,
};
