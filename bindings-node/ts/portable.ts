/**
 * JSON Schema as every host reads it: `$ref` replaced by what it points at, `$defs` and the default `$schema` gone.
 * The same schema always comes out the same way.
 */

export type JsonObject = Record<string, unknown>;

const DEFAULT_DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;
/** Before 2019-09 the keywords beside a `$ref` did not count. */
const OLD_DIALECT = /\/draft-0[3-7]\/schema#?$/;

/** Keywords that hold one schema or a list of schemas, and those that hold schemas by name. */
const HOLDING = new Set([
  "additionalItems", "additionalProperties", "allOf", "anyOf", "contains", "contentSchema", "else", "if", "items",
  "not", "oneOf", "prefixItems", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties",
]);
const NAMING = new Set(["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]);
/** Keywords that only describe, so that they may join what a `$ref` points at. */
const DESCRIBING = new Set(["title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"]);

/** Inlining copies; past this many schemas the copies are no use to anybody. */
const LIMIT = 20_000;

/** Inlines every local reference; throws an error that names the place where the schema is cyclic. */
export function portable(schema: JsonObject, place: string): JsonObject {
  const inliner = new Inliner(schema, place);
  const { $schema, ...written } = inliner.write(schema, []);
  if (!inliner.keptReference) {
    delete written["$defs"];
    delete written["definitions"];
  }
  const keeps = typeof $schema === "string" && !DEFAULT_DIALECT.test($schema);
  return keeps ? { $schema, ...written } : written;
}

class Inliner {
  /** A reference that does not point into this document stays, for the core to refuse. */
  keptReference = false;
  private written = 0;
  private readonly old: boolean;

  constructor(
    private readonly root: JsonObject,
    private readonly place: string,
  ) {
    this.old = typeof root["$schema"] === "string" && OLD_DIALECT.test(root["$schema"]);
  }

  /** `open` are the references that are being replaced around this schema. */
  write(schema: JsonObject, open: readonly string[]): JsonObject {
    if (++this.written > LIMIT) {
      throw new TypeError(`${this.place}: without $ref the schema grows past ${LIMIT} parts. ${MEND}`);
    }
    const reference = schema["$ref"];
    if (typeof reference !== "string") return this.writeFields(schema, open);
    const target = this.find(reference);
    if (target === undefined) {
      this.keptReference = true;
      return this.writeFields(schema, open);
    }
    if (open.includes(reference)) {
      throw new TypeError(`${this.place}: the schema is cyclic (${[...open, reference].join(" → ")}). ${MEND}`);
    }
    const { $ref: _, $defs: __, definitions: ___, $schema: ____, ...beside } = schema;
    const inlined = this.write(target, [...open, reference]);
    for (const name of ["$defs", "definitions", "$schema", "$anchor"]) delete inlined[name];
    if (this.old || Object.keys(beside).length === 0) return inlined;
    const siblings = this.writeFields(beside, open);
    if (Object.keys(siblings).every((name) => DESCRIBING.has(name))) return { ...inlined, ...siblings };
    const others = Array.isArray(siblings["allOf"]) ? (siblings["allOf"] as unknown[]) : [];
    return { ...siblings, allOf: [inlined, ...others] };
  }

  private writeFields(schema: JsonObject, open: readonly string[]): JsonObject {
    const out: JsonObject = {};
    for (const [name, value] of Object.entries(schema)) {
      // Definitions are written where they are used; alone they would look cyclic when nothing uses them.
      if (name === "$dynamicRef") this.keptReference = true;
      if (name === "$defs" || name === "definitions") define(out, name, value);
      else if (HOLDING.has(name)) define(out, name, this.writeAny(value, open));
      else if (NAMING.has(name) && isSchema(value)) define(out, name, this.writeNamed(value, open));
      else define(out, name, value);
    }
    return out;
  }

  private writeNamed(schemas: JsonObject, open: readonly string[]): JsonObject {
    const out: JsonObject = {};
    for (const [name, value] of Object.entries(schemas)) define(out, name, this.writeAny(value, open));
    return out;
  }

  private writeAny(value: unknown, open: readonly string[]): unknown {
    if (Array.isArray(value)) return value.map((item) => this.writeAny(item, open));
    return isSchema(value) ? this.write(value, open) : value;
  }

  /** What `#`, `#/a/b` or `#anchor` points at in this document. */
  private find(reference: string): JsonObject | undefined {
    if (reference === "#") return this.root;
    if (reference.startsWith("#/")) return follow(this.root, reference);
    return reference.startsWith("#") ? findAnchor(this.root, reference.slice(1)) : undefined;
  }
}

const MEND =
  'Hosts read no cyclic schemas: bound the depth, leave the inner type open, or make the server with schemaProfile: "full".';

/** What a `$ref` of the form `#/a/b` points at. */
export function follow(root: JsonObject, reference: string): JsonObject | undefined {
  let at: unknown = root;
  for (const part of reference.split("/").slice(1)) {
    const name = decode(part).replaceAll("~1", "/").replaceAll("~0", "~");
    if (typeof at !== "object" || at === null || !Object.hasOwn(at, name)) return undefined;
    at = (at as JsonObject)[name];
  }
  return isSchema(at) ? at : undefined;
}

function findAnchor(value: unknown, anchor: string): JsonObject | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (isSchema(value) && value["$anchor"] === anchor) return value;
  for (const inner of Object.values(value)) {
    const found = findAnchor(inner, anchor);
    if (found) return found;
  }
  return undefined;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Sets a field of any name, `__proto__` among them. */
function define(object: JsonObject, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
}

function isSchema(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
