import { refuseUnknown } from "./checks.js";
import { toolFromWire, toolToWire } from "./components.js";
import { contentListFromWire, contentToWire, isMessage, messageFromWire, textOf } from "./content.js";
import { sampledContentOf, sampledMessageOf } from "./official-content.js";
import type { SampleRequest } from "./types/client.js";
import type { Tool } from "./types/components.js";
import type { SampledMessages, SampleOptions, SampleResult, SpecSampleRequest } from "./types/questions.js";
import { isObject } from "./values.js";

type Wire = Readonly<Record<string, unknown>>;

const MAX_TOKENS = 1_024;

const OPTIONS: { readonly [K in keyof Required<SampleOptions>]: true } = {
  maxTokens: true, system: true, temperature: true, stop: true, models: true, costPriority: true, speedPriority: true,
  intelligencePriority: true, tools: true, toolChoice: true,
};

const SPEC_PARAMS: { readonly [K in keyof Required<SpecSampleRequest>]: true } = {
  messages: true, maxTokens: true, systemPrompt: true, temperature: true, stopSequences: true, modelPreferences: true, includeContext: true,
  metadata: true, tools: true, toolChoice: true,
};

/** Returns the params of `sampling/createMessage`. */
export function sampleToWire(given: SampledMessages | SpecSampleRequest, options: SampleOptions = {}): Wire {
  if (isObject(given) && !isMessage(given) && "messages" in given) return specParams(given, options);
  refuseUnknown("sample()", [...Object.keys(OPTIONS), "key"], options);
  const models = typeof options.models === "string" ? [options.models] : options.models;
  const preferences = defined({
    hints: models?.map((name) => ({ name })),
    costPriority: options.costPriority,
    speedPriority: options.speedPriority,
    intelligencePriority: options.intelligencePriority,
  });
  return defined({
    messages: sampledMessages(given),
    maxTokens: options.maxTokens ?? MAX_TOKENS,
    systemPrompt: options.system,
    temperature: options.temperature,
    stopSequences: options.stop,
    modelPreferences: Object.keys(preferences).length > 0 ? preferences : undefined,
    tools: options.tools?.map((tool) => toolToWire(tool as Tool)),
    toolChoice: options.toolChoice && { mode: options.toolChoice },
  });
}

/** Returns params of the specification's shape, in which all options have their place. */
function specParams(given: Record<string, unknown>, options: SampleOptions): Wire {
  refuseUnknown("sample()", ["key"], options);
  refuseUnknown("sample()", Object.keys(SPEC_PARAMS), given, { system: "systemPrompt", stop: "stopSequences", models: "modelPreferences" }, "param");
  return defined({ maxTokens: MAX_TOKENS, ...given, messages: sampledMessages(given["messages"]) });
}

function sampledMessages(given: unknown): Wire[] {
  return (Array.isArray(given) ? (given as unknown[]) : [given]).map(sampledMessage);
}

/** Writes a message, which may hold several content blocks, unlike that of a prompt. */
function sampledMessage(given: unknown, index: number): Wire {
  const message = sampledMessageOf(given);
  if (message === undefined) {
    throw new TypeError(`sample(): message ${index} must be a string or made by user() or assistant(), or { role: "user", content: { type: "text", text: … } }`);
  }
  const { role, content } = message;
  return { role, content: Array.isArray(content) ? content.map(contentToWire) : contentToWire(content as never) };
}

export function sampleRequestFromWire(raw: Wire): SampleRequest {
  const preferences = isObject(raw["modelPreferences"]) ? raw["modelPreferences"] : {};
  const choice = isObject(raw["toolChoice"]) ? raw["toolChoice"]["mode"] : undefined;
  return {
    messages: objects(raw["messages"]).map(messageFromWire),
    maxTokens: numberOr(raw["maxTokens"]) ?? MAX_TOKENS,
    system: typeof raw["systemPrompt"] === "string" ? raw["systemPrompt"] : undefined,
    temperature: numberOr(raw["temperature"]),
    stop: Array.isArray(raw["stopSequences"]) ? raw["stopSequences"].map(String) : [],
    models: objects(preferences["hints"]).flatMap((hint) => (typeof hint["name"] === "string" ? [hint["name"]] : [])),
    costPriority: numberOr(preferences["costPriority"]),
    speedPriority: numberOr(preferences["speedPriority"]),
    intelligencePriority: numberOr(preferences["intelligencePriority"]),
    tools: objects(raw["tools"]).map(toolFromWire),
    toolChoice: choice === "auto" || choice === "required" || choice === "none" ? choice : undefined,
  };
}

/** Writes the result of `onSample`. */
export function sampleResultToWire(result: SampleResult): Wire {
  const pieces = result.content.map((piece) => contentToWire(sampledContentOf(piece) ?? piece));
  return defined({
    role: result.role,
    content: pieces.length === 1 ? pieces[0] : pieces,
    model: result.model,
    stopReason: result.stopReason,
  });
}

export function sampleResultFromWire(raw: Wire): SampleResult {
  const content = contentListFromWire(raw["content"]);
  return {
    role: raw["role"] === "user" ? "user" : "assistant",
    content,
    text: textOf(content),
    model: typeof raw["model"] === "string" ? raw["model"] : "",
    stopReason: typeof raw["stopReason"] === "string" ? raw["stopReason"] : undefined,
  };
}

function objects(value: unknown): Wire[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

function numberOr(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function defined(fields: Wire): Wire {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
