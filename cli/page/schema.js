// @ts-check
// JSON Schemas as far as forms need them: references within the schema, combined schemas, and alternatives.

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {{ label: string, schema: Json }} Variant
 */

const MAX_STEPS = 64;

/**
 * Follows references and joins `allOf`. Returns an object; a boolean schema becomes an empty one.
 * @param {Json} schema
 * @param {Json} root
 * @returns {Json}
 */
export function resolve(schema, root) {
  let resolved = schema;
  for (let step = 0; step < MAX_STEPS; step += 1) {
    if (!isObject(resolved)) return {};
    if (typeof resolved.$ref === "string") {
      const { $ref, ...rest } = resolved;
      resolved = { ...find($ref, root), ...rest };
    } else if (Array.isArray(resolved.allOf)) {
      const { allOf, ...rest } = resolved;
      resolved = allOf.map(part => resolve(part, root)).reduce(join, rest);
    } else {
      return resolved;
    }
  }
  return {};
}

/**
 * @param {string} reference
 * @param {Json} root
 * @returns {Json}
 */
function find(reference, root) {
  if (reference === "#") return root;
  if (!reference.startsWith("#/")) return {};
  const names = reference.slice(2).split("/").map(part => decodePart(part).replaceAll("~1", "/").replaceAll("~0", "~"));
  let found = root;
  for (const name of names) {
    if (!isObject(found) || !Object.hasOwn(found, name)) return {};
    found = found[name];
  }
  return isObject(found) ? found : {};
}

/** @param {string} text */
function decodePart(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/**
 * Joins two schemas that both apply.
 * @param {Json} one
 * @param {Json} other
 * @returns {Json}
 */
function join(one, other) {
  const joined = { ...other, ...one };
  if (isObject(one.properties) && isObject(other.properties)) joined.properties = { ...other.properties, ...one.properties };
  if (Array.isArray(one.required) && Array.isArray(other.required)) joined.required = [...new Set([...one.required, ...other.required])];
  return joined;
}

/** @param {unknown} value @returns {value is Record<string, Json>} */
export function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Returns the fixed values of a schema with their labels, or null if it has none.
 * @param {Json} schema
 * @returns {{ label: string, value: Json }[] | null}
 */
export function choices(schema) {
  if ("const" in schema) return [{ label: String(schema.title ?? text(schema.const)), value: schema.const }];
  if (Array.isArray(schema.enum)) {
    const names = Array.isArray(schema.enumNames) ? schema.enumNames : [];
    return schema.enum.map((/** @type {Json} */ value, /** @type {number} */ index) => ({ label: String(names[index] ?? text(value)), value }));
  }
  const listed = schema.oneOf ?? schema.anyOf;
  if (!Array.isArray(listed) || !listed.length || !listed.every(choice => isObject(choice) && "const" in choice)) return null;
  return listed.map(choice => ({ label: String(choice.title ?? text(choice.const)), value: choice.const }));
}

/**
 * Returns the alternatives of a schema, or null if it has only one form.
 * @param {Json} schema
 * @param {Json} root
 * @returns {Variant[] | null}
 */
export function variants(schema, root) {
  for (const word of ["oneOf", "anyOf"]) {
    const listed = schema[word];
    if (!Array.isArray(listed) || !listed.length) continue;
    const { [word]: _, ...base } = schema;
    // Default and texts belong to the field as a whole.
    const { default: __, title: ___, description: ____, ...shared } = base;
    return listed.map((variant, index) => {
      const resolved = join(resolve(variant, root), shared);
      return { label: labelOf(resolved, index), schema: resolved };
    });
  }
  if (!Array.isArray(schema.type)) return null;
  if (schema.type.length === 1) return null;
  return schema.type.map((/** @type {string} */ type) => ({ label: type, schema: { ...schema, type, title: undefined, description: undefined, default: undefined } }));
}

/** @param {Json} schema @param {number} index */
function labelOf(schema, index) {
  if (typeof schema.title === "string") return schema.title;
  const properties = isObject(schema.properties) ? Object.entries(schema.properties) : [];
  // Variants that a property tells apart are named by it.
  const tag = properties.find(([, property]) => isObject(property) && "const" in property);
  if (tag) return `${tag[0]}: ${text(tag[1].const)}`;
  if (choices(schema)) return (choices(schema) ?? []).map(choice => choice.label).join(" | ");
  return typeOf(schema) ?? `Variant ${index + 1}`;
}

/**
 * Returns the type of the values of a schema, as far as it says one.
 * @param {Json} schema
 * @returns {string | undefined}
 */
export function typeOf(schema) {
  if (typeof schema.type === "string") return schema.type;
  if (Array.isArray(schema.type)) return schema.type[0];
  if (isObject(schema.properties) || isObject(schema.additionalProperties)) return "object";
  if (schema.items !== undefined || Array.isArray(schema.prefixItems)) return "array";
  return undefined;
}

/**
 * Returns whether a value may be meant by a schema: its type and its fixed values fit.
 * @param {Json} value
 * @param {Json} schema
 * @param {Json} root
 * @returns {boolean}
 */
export function fits(value, schema, root) {
  const fixed = choices(schema);
  if (fixed) return fixed.some(choice => text(choice.value) === text(value));
  const type = typeOf(schema);
  const actual = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  if (type === "integer") return actual === "number" && Number.isInteger(value);
  if (type !== undefined && type !== actual) return false;
  if (actual !== "object" || !isObject(schema.properties)) return true;
  const required = Array.isArray(schema.required) ? schema.required : [];
  const properties = schema.properties;
  return required.every((/** @type {string} */ name) => name in value)
    && Object.entries(value).every(([name, member]) => !(name in properties) || fits(member, resolve(properties[name], root), root));
}

/**
 * Returns the limits of a schema in words.
 * @param {Json} schema
 * @returns {string}
 */
export function limits(schema) {
  const words = [];
  for (const name of ["format", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength", "pattern", "minItems", "maxItems", "contentMediaType"]) {
    if (schema[name] !== undefined) words.push(`${name} ${text(schema[name])}`);
  }
  return words.join(", ");
}

/** @param {Json} value @returns {string} */
export function text(value) {
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "");
}
