import { isObject } from "../model/values.js";
import { native } from "../native.js";

/**
 * Options for the writer of a library that publishes the text of a regular expression without its flags; undefined for other
 * libraries. They make the flags part of the text, or leave the pattern out: the library checks the value in any case.
 */
export function writerOptions(vendor: string): { readonly override: (written: Written) => void } | undefined {
  return vendor === "zod" ? { override: ({ zodSchema, jsonSchema }) => replace(jsonSchema, expressionsOf(zodSchema)) } : undefined;
}

/** Makes flags part of the patterns that arktype wrote, whose own form of a schema has them. */
export function withFlags(schema: unknown, vendor: string, json: object): void {
  if (vendor !== "arktype") return;
  const expressions: Expression[] = [];
  walk((schema as { readonly json?: unknown }).json, ({ rule: source, flags }) => {
    if (typeof source === "string" && typeof flags === "string") expressions.push({ source, flags });
  });
  if (expressions.length > 0) walk(json, (part) => replace(part, expressions));
}

/** The argument of an override of zod. */
interface Written {
  readonly zodSchema: unknown;
  readonly jsonSchema: Record<string, unknown>;
}

type Expression = Pick<RegExp, "source" | "flags">;

/** Returns the regular expressions of a schema of zod and of its checks. */
function expressionsOf(schema: unknown): Expression[] {
  const internals = (part: unknown): Record<string, unknown> => {
    const found = isObject(part) ? part["_zod"] : undefined;
    return isObject(found) ? found : {};
  };
  const defOf = (part: unknown): Record<string, unknown> => {
    const def = internals(part)["def"];
    return isObject(def) ? def : {};
  };
  const checks = defOf(schema)["checks"];
  const patterns = [schema, ...(Array.isArray(checks) ? (checks as unknown[]) : [])].map((part) => defOf(part)["pattern"]);
  return patterns.filter((pattern) => pattern instanceof RegExp);
}

function replace(schema: Record<string, unknown>, expressions: readonly Expression[]): void {
  const all = schema["allOf"];
  for (const part of [schema, ...(Array.isArray(all) ? (all as unknown[]) : [])]) {
    if (!isObject(part)) continue;
    const expression = expressions.find(({ source, flags }) => flags !== "" && source === part["pattern"]);
    if (expression === undefined) continue;
    const pattern = native().NativeSchema.withoutFlags(expression.source, expression.flags);
    if (pattern === null) delete part["pattern"];
    else part["pattern"] = pattern;
  }
}

function walk(value: unknown, visit: (part: Record<string, unknown>) => void): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (isObject(value)) {
    visit(value);
    for (const part of Object.values(value)) walk(part, visit);
  }
}
