import { parseJson } from "../model/big-integers.js";
import { stringify } from "../model/stringify.js";
import { checked, native } from "../native.js";
import { McpError } from "../model/errors.js";
import { toolResultFromWire, withData, type ToolResult } from "../model/results.js";
import { compileSchema, SchemaMismatch, type Validate, validatorOf } from "../schema/compile.js";
import { checkToolResult } from "./checks.js";
import { received } from "./received.js";
import type { Reply } from "./wire.js";

/** Returns a tool's result, with `data` validated by the schema if one is given. */
export function toolResult(name: string, target: string, reply: Reply, output: unknown): ToolResult | Promise<ToolResult> {
  const whole = received(`tools/call ${JSON.stringify(name)}`, target, reply.result, checkToolResult, toolResultFromWire);
  const hasData = reply.data.length > 0;
  const result = hasData ? withData(whole, reply.data[0]) : whole;
  if (output === undefined || result.isError) return result;
  const check = checkOf(output, `callTool(${JSON.stringify(name)}), output`);
  return typed(result, name, check, hasData ? undefined : parsedText(result.text));
}

/** Returns the result with its data as the check gives it back; if the check refuses the text, of the JSON `inText`. */
async function typed(
  result: ToolResult,
  name: string,
  check: Validate,
  inText: { readonly value: unknown } | undefined,
): Promise<ToolResult> {
  const place = `tool ${JSON.stringify(name)}`;
  try {
    if (inText !== undefined) {
      try {
        return withData(result, await check(result.data));
      } catch (error) {
        if (!(error instanceof SchemaMismatch)) throw error;
      }
    }
    return withData(result, await check(inText === undefined ? result.data : inText.value));
  } catch (error) {
    if (!(error instanceof SchemaMismatch)) throw error;
    throw new McpError(`${place} returned a result that the given output schema refuses: ${error.message}`, {
      kind: "protocol",
      phase: "call",
      data: result.data,
      cause: error,
    });
  }
}

function parsedText(text: string): { value: unknown } | undefined {
  try {
    return { value: parseJson(text) };
  } catch {
    return undefined;
  }
}

const known = new WeakMap<object, Validate>();

/** Returns the library's own validator, or one for a plain JSON Schema. */
function checkOf(schema: unknown, place: string): Validate {
  const cached = known.get(schema as object);
  if (cached) return cached;
  const check = validatorOf(schema, "output") ?? plainCheck(schema, place);
  known.set(schema as object, check);
  return check;
}

function plainCheck(schema: unknown, place: string): Validate {
  const { json, fill } = compileSchema(schema, place, "full", "output");
  const compiled = checked(place, () => new (native().NativeSchema)(stringify(json) ?? ""));
  return (value) => {
    const wrong = compiled.violation(stringify(value) ?? "null");
    if (wrong !== null) throw new SchemaMismatch(wrong, "output");
    return fill ? fill(value) : value;
  };
}
