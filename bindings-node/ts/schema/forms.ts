import { native } from "../native.js";
import { isPromise } from "../model/promises.js";
import type { Maybe } from "../model/types/components.js";
import { isObject } from "../model/values.js";
import { compileSchema } from "./compile.js";
import type { JsonObject } from "./portable.js";

/** The form of a question: a flat object schema, and the reader of its answers. */
export interface Form {
  readonly schema: JsonObject;
  /** True once the core has accepted the form for at least one revision. */
  isAskable: boolean;
  /** Returns the answer in the type of the schema. */
  read(content: unknown): Maybe<unknown>;
}

/** The values of `format` that forms allow. */
const FORMATS = new Set(["email", "uri", "date", "date-time"]);
/** Keywords that do not restrict values. */
const REMARKS = ["$schema", "$id", "$comment", "id", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"];

/** The only property of a form that asks for a plain type. */
export const VALUE = "value";

const known = new WeakMap<object, Form>();

/** Throws a TypeError for a schema that no form can express. `message` is the text for the user. */
export function formOf(schema: unknown, message: string): Form {
  let form = known.get(schema as object);
  if (!form) {
    form = makeForm(schema, `elicit(${JSON.stringify(message)})`);
    known.set(schema as object, form);
  }
  const problem = form.isAskable ? null : native().NativeSchema.formProblem(message, JSON.stringify(form.schema));
  if (problem !== null) throw new TypeError(problem);
  form.isAskable = true;
  return form;
}

function makeForm(schema: unknown, place: string): Form {
  const { json, validate, fill } = compileSchema(schema, place);
  // A record has no fields to show.
  const whole = isObject(json["properties"]) || (json["type"] === "object" && !isObject(json["additionalProperties"]));
  const properties: JsonObject = {};
  const asked = whole ? (isObject(json["properties"]) ? json["properties"] : {}) : { [VALUE]: json };
  for (const [name, property] of Object.entries(asked)) {
    const field = question(property);
    properties[name] = validate ? withoutChecked(field) : field;
  }
  const required = whole ? json["required"] : "default" in json || (validate && acceptsUndefined(validate)) ? [] : [VALUE];
  const some = Array.isArray(required) && required.length > 0;
  return {
    schema: { type: "object", properties, ...(some && { required }) },
    isAskable: false,
    read(content) {
      const given = isObject(content) ? content : {};
      const value = whole ? given : (given[VALUE] ?? (validate ? undefined : json["default"]));
      return validate ? validate(value) : fill ? fill(value) : value;
    },
  };
}

/** Returns true for an optional plain type, which JSON Schema can't express. */
function acceptsUndefined(validate: (value: unknown) => Maybe<unknown>): boolean {
  try {
    const value = validate(undefined);
    if (isPromise(value)) void value.then(undefined, () => undefined);
    return value === undefined;
  } catch {
    return false;
  }
}

/** Returns a form's property, with choices in the form's notation. Unsupported schemas stay, for the core to refuse. */
function question(property: unknown): JsonObject {
  const written = isObject(property) ? property : {};
  const choices = choicesOf(written);
  if (choices) return { ...withoutChoices(written), type: "string", ...choices };
  const { type, items } = written;
  const many = type === "array" && isObject(items) ? choicesOf(items) : undefined;
  return many ? { ...written, items: "enum" in many ? { type: "string", ...many } : { anyOf: many["oneOf"] } } : written;
}

/** Removes keywords that the library's validator checks anyway, or that do not restrict values. */
function withoutChecked(written: JsonObject): JsonObject {
  const { format, pattern, exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = written;
  for (const remark of REMARKS) delete rest[remark];
  // Libraries write formats as patterns as well.
  if (typeof format === "string") Object.assign(rest, FORMATS.has(format) && { format });
  else if (pattern !== undefined) rest["pattern"] = pattern;
  const isInteger = rest["type"] === "integer";
  if (typeof above === "number") Object.assign(rest, isInteger ? { minimum: above + 1 } : { exclusiveMinimum: above });
  if (typeof below === "number") Object.assign(rest, isInteger ? { maximum: below - 1 } : { exclusiveMaximum: below });
  return rest;
}

/** Returns `{ enum }`, or `{ oneOf }` if every choice has a title. */
function choicesOf(schema: JsonObject): { enum: string[] } | { oneOf: { const: string; title: string }[] } | undefined {
  const listed = schema["enum"] ?? ("const" in schema ? [schema["const"]] : undefined);
  if (isTexts(listed)) return { enum: listed };
  const several = schema["oneOf"] ?? schema["anyOf"];
  if (!Array.isArray(several) || several.length === 0 || !several.every(isObject)) return undefined;
  const values = several.map((one) => one["const"]);
  if (!isTexts(values)) return undefined;
  const titles = several.map((one) => one["title"]);
  return isTexts(titles)
    ? { oneOf: values.map((value, index) => ({ const: value, title: titles[index] ?? value })) }
    : { enum: values };
}

function withoutChoices(schema: JsonObject): JsonObject {
  const { enum: _, const: __, oneOf: ___, anyOf: ____, ...rest } = schema;
  return rest;
}

function isTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((item) => typeof item === "string");
}
