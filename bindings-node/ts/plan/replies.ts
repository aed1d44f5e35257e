import { contentToWire, isContent, isMessage, messageToWire, toBase64 } from "../model/content.js";
import { toJson } from "../model/json.js";
import {
  PromptResult,
  promptResultToWire,
  ResourceResult,
  resourceResultToWire,
  resultToWire,
  ToolResult,
  toolResultToWire,
} from "../model/results.js";
import { officialPromptResult, officialResourceResult, officialToolResult } from "./official-results.js";

/** The kind of a handler; `prepared` is middleware around a request that the core answers, `route` answers HTTP requests. */
export type ComponentKind = "tool" | "resource" | "prompt" | "completion" | "method" | "prepared" | "route";

/** The formats of a reply's payload, by the numbers that the core knows. */
export const ReplyKind = { nothing: 0, blob: 1, parts: 2, result: 3, text: 4, json: 5 } as const;
export type Reply = readonly [kind: (typeof ReplyKind)[keyof typeof ReplyKind], payload: string];

const NOTHING: Reply = [ReplyKind.nothing, ""];

/**
 * Returns a handler's value as the core takes it.
 *
 * @param hasContentKey - The tool's output schema has a property `content`: objects with that key are data.
 * @throws TypeError that says what can't be sent and where it stands.
 */
export function toReply(kind: ComponentKind, value: unknown, hasContentKey = false): Reply {
  switch (kind) {
    case "tool":
      return toolReply(value, hasContentKey);
    case "resource":
      return resourceReply(value);
    case "prompt":
      return promptReply(value);
    case "completion":
      return completionReply(value);
    case "method":
      return methodReply(value);
    case "prepared":
      return value === undefined ? NOTHING : [ReplyKind.result, toJson(value)];
    case "route":
      return [ReplyKind.result, toJson(value)];
  }
}

function toolReply(value: unknown, hasContentKey: boolean): Reply {
  if (typeof value === "string") return [ReplyKind.text, value];
  if (value === undefined) return NOTHING;
  if (isContent(value)) return parts([contentToWire(value)]);
  if (value instanceof ToolResult) return [ReplyKind.result, toJson(toolResultToWire(value))];
  if (Array.isArray(value) && value.some(isContent)) {
    return parts(
      value.map((item: unknown, index) => {
        if (typeof item === "string") return item;
        if (isContent(item)) return contentToWire(item);
        throw new TypeError(
          `the result[${index}] is ${nameOf(item)} among content; a list with content may hold content and strings only, ` +
            "so return content and data as new ToolResult([…], { structuredContent: … })",
        );
      }),
    );
  }
  refuseResultOf("tool", value);
  const official = hasContentKey ? undefined : officialToolResult(value);
  if (official) return [ReplyKind.result, toJson(toolResultToWire(official))];
  return dataReply(value);
}

/** The reply for data. A value that JSON writes as a string (a Date, a URL) is plain text. */
function dataReply(value: unknown): Reply {
  const json = toJson(value);
  if (json.startsWith('"')) return [ReplyKind.text, JSON.parse(json) as string];
  return [ReplyKind.json, json];
}

function resourceReply(value: unknown): Reply {
  if (typeof value === "string") return [ReplyKind.text, value];
  if (value === undefined) throw new TypeError("the result is undefined: a resource returns a string, bytes, JSON or new ResourceResult(…)");
  if (value instanceof Uint8Array) return [ReplyKind.blob, toBase64(value)];
  if (value instanceof ArrayBuffer) return [ReplyKind.blob, toBase64(new Uint8Array(value))];
  if (value instanceof ResourceResult) return [ReplyKind.result, toJson(resourceResultToWire(value))];
  if (isContent(value) || (Array.isArray(value) && value.some(isContent))) {
    throw new TypeError(
      "the result is content, which only tools and prompts return; return a string, bytes, JSON or new ResourceResult(…)",
    );
  }
  refuseResultOf("resource", value);
  const official = officialResourceResult(value);
  if (official) return [ReplyKind.result, toJson(resourceResultToWire(official))];
  return dataReply(value);
}

function promptReply(value: unknown): Reply {
  if (typeof value === "string") return [ReplyKind.text, value];
  if (isMessage(value)) return parts(messageToWire(value));
  if (value instanceof PromptResult) return [ReplyKind.result, toJson(promptResultToWire(value))];
  if (Array.isArray(value)) {
    return parts(
      value.flatMap((item: unknown, index): unknown[] => {
        if (typeof item === "string") return [item];
        if (isMessage(item)) return messageToWire(item);
        throw new TypeError(`the result[${index}] is ${nameOf(item)}; ${PROMPT_HINT}`);
      }),
    );
  }
  const official = officialPromptResult(value);
  if (official) return [ReplyKind.result, toJson(promptResultToWire(official))];
  throw new TypeError(`the result is ${nameOf(value)}; ${PROMPT_HINT}`);
}

const PROMPT_HINT =
  "return a string, user(…), assistant(…), a list of those, or new PromptResult(…); content belongs into user(…)";

function completionReply(value: unknown): Reply {
  if (isStrings(value)) return [ReplyKind.json, toJson(value)];
  if (typeof value === "object" && value !== null && "values" in value && isStrings(value.values)) {
    const { values, total, hasMore } = value as { values: unknown; total?: unknown; hasMore?: unknown };
    return [ReplyKind.result, toJson({ completion: { values, total, hasMore } })];
  }
  throw new TypeError(`the result is ${nameOf(value)}; return a list of strings, or { values, total, hasMore }`);
}

/** Writes the result of a method; those of the specification may be answered with a result class. */
function methodReply(value: unknown): Reply {
  if (value === undefined) return NOTHING;
  const result = resultToWire(value);
  return [result === value ? ReplyKind.json : ReplyKind.result, toJson(result)];
}

function parts(items: readonly unknown[]): Reply {
  return [ReplyKind.parts, toJson(items)];
}

function isStrings(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((item) => typeof item === "string");
}

/** Refuses a result class in the wrong kind of handler, which would be sent as JSON. */
function refuseResultOf(kind: "tool" | "resource", value: unknown): void {
  if (value instanceof ToolResult || value instanceof ResourceResult || value instanceof PromptResult) {
    const right = kind === "tool" ? "ToolResult" : "ResourceResult";
    throw new TypeError(`the result is ${nameOf(value)}; the result class of a ${kind} is ${right}`);
  }
}

function nameOf(value: unknown): string {
  if (value === null || value === undefined) return String(value);
  if (isContent(value)) return `content (${value.type})`;
  if (isMessage(value)) return "a prompt's message";
  if (Array.isArray(value)) return "a list";
  if (typeof value !== "object") return `a ${typeof value}`;
  const name: unknown = value.constructor?.name;
  return typeof name === "string" && name !== "" && name !== "Object" ? `of class ${name}` : "an object";
}
