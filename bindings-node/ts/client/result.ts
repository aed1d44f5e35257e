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
  const result = reply.data.length > 0 ? withData(whole, reply.data[0]) : withTextData(whole);
  if (output === undefined || result.isError) return result;
  return typed(result, name, checkOf(output, `callTool(${JSON.stringify(name)}), output`));
}

/** Returns the result with the JSON value in its text as `data`, if the core reads it so. */
function withTextData(result: ToolResult): ToolResult {
  const isData = native().NativeResult.isData(result.text, result.content.length, result.isError);
  return isData ? withData(result, JSON.parse(result.text)) : result;
}

async function typed(result: ToolResult, name: string, check: Validate): Promise<ToolResult> {
  const place = `tool ${JSON.stringify(name)}`;
  try {
    // Revisions before 2025-06-18 carry structured values as text only.
    const parsed = result.structuredContent === undefined ? parsedText(result.text) : undefined;
    if (parsed !== undefined) {
      try {
        return withData(result, await check(parsed.value));
      } catch (error) {
        if (!(error instanceof SchemaMismatch)) throw error;
      }
    }
    return withData(result, await check(result.structuredContent === undefined ? result.text : result.data));
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
    return { value: JSON.parse(text) as unknown };
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
  const compiled = checked(place, () => new (native().NativeSchema)(JSON.stringify(json)));
  return (value) => {
    const wrong = compiled.violation(JSON.stringify(value));
    if (wrong !== null) throw new SchemaMismatch(wrong, "output");
    return fill ? fill(value) : value;
  };
}
