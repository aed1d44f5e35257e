import { parseJson } from "../model/big-integers.js";
import { stringify } from "../model/stringify.js";
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

const known = new WeakMap<object, Form>();

/** Throws a TypeError for a schema that no form can express. `message` is the text for the user. */
export function formOf(schema: unknown, message: string): Form {
  let form = known.get(schema as object);
  if (!form) {
    form = makeForm(schema, `elicit(${JSON.stringify(message)})`);
    known.set(schema as object, form);
  }
  const problem = form.isAskable ? null : native().NativeSchema.formProblem(message, stringify(form.schema) ?? "");
  if (problem !== null) throw new TypeError(problem);
  form.isAskable = true;
  return form;
}

function makeForm(schema: unknown, place: string): Form {
  const { json, validate, fill } = compileSchema(schema, place);
  // An object is asked by its fields, and never missing.
  const isRequired = isObject(json["properties"]) || !("default" in json || (validate && acceptsUndefined(validate)));
  const [written, isValue] = native().NativeSchema.form(stringify(json) ?? "", validate ? "validated" : "plain", isRequired);
  return {
    schema: parseJson(written) as JsonObject,
    isAskable: false,
    read(content) {
      const given = isObject(content) ? content : {};
      const value = isValue ? (given["value"] ?? (validate ? undefined : json["default"])) : given;
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
