import { isObject } from "./content.js";
import { native } from "./native.js";
import type { JsonObject } from "./portable.js";
import { compileSchema, isPromise } from "./schema.js";
import type { Maybe } from "./types.js";

/** What a question's schema becomes: a flat object, and the way back from what was filled in. */
export interface Form {
  readonly schema: JsonObject;
  /** Whether the core was asked already, and some revision can say it. */
  isAskable: boolean;
  /** The answer in the type that was asked for. */
  read(content: unknown): Maybe<unknown>;
}

/** The formats that a form can name. */
const FORMATS = new Set(["email", "uri", "date", "date-time"]);
/** Keywords that say nothing of which values fit. */
const REMARKS = ["$schema", "$id", "$comment", "id", "examples", "deprecated", "readOnly", "writeOnly", "contentEncoding", "contentMediaType"];

/** The one property of a form that asks for a plain type. */
export const VALUE = "value";

const known = new WeakMap<object, Form>();

/** Refuses what no form can ask; `message` is what the user is to read. */
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
  // A record has no fields that could be shown.
  const whole = isObject(json["properties"]) || (json["type"] === "object" && !isObject(json["additionalProperties"]));
  const properties: JsonObject = {};
  const asked = whole ? (isObject(json["properties"]) ? json["properties"] : {}) : { [VALUE]: json };
  for (const [name, property] of Object.entries(asked)) {
    const field = question(property);
    properties[name] = validate ? withoutChecked(field) : field;
  }
  const required = whole ? json["required"] : "default" in json || (validate && takesNothing(validate)) ? [] : [VALUE];
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

/** Whether a plain type is optional, which its JSON Schema has no word for. */
function takesNothing(validate: (value: unknown) => Maybe<unknown>): boolean {
  try {
    const value = validate(undefined);
    if (isPromise(value)) void value.then(undefined, () => undefined);
    return value === undefined;
  } catch {
    return false;
  }
}

/** A form's property, choices as forms have them. What no form can ask stays as it is, for the core to say so. */
function question(property: unknown): JsonObject {
  const written = isObject(property) ? property : {};
  const choices = choicesOf(written);
  if (choices) return { ...withoutChoices(written), type: "string", ...choices };
  const { type, items } = written;
  const many = type === "array" && isObject(items) ? choicesOf(items) : undefined;
  return many ? { ...written, items: "enum" in many ? { type: "string", ...many } : { anyOf: many["oneOf"] } } : written;
}

/** Without what the validator checks in the answer all the same, and what only remarks; more the core would refuse. */
function withoutChecked(written: JsonObject): JsonObject {
  const { format, pattern, exclusiveMinimum: above, exclusiveMaximum: below, ...rest } = written;
  for (const remark of REMARKS) delete rest[remark];
  // Formats are written as patterns, too.
  if (typeof format === "string") Object.assign(rest, FORMATS.has(format) && { format });
  else if (pattern !== undefined) rest["pattern"] = pattern;
  const isInteger = rest["type"] === "integer";
  if (typeof above === "number") Object.assign(rest, isInteger ? { minimum: above + 1 } : { exclusiveMinimum: above });
  if (typeof below === "number") Object.assign(rest, isInteger ? { maximum: below - 1 } : { exclusiveMaximum: below });
  return rest;
}

/** `{ enum }`, or `{ oneOf }` where every choice has a title. */
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
