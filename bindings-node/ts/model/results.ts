import { brandClass } from "./brand.js";
import { refuseUnknown } from "./checks.js";
import {
  asContent, contentListFromWire, contentsFromWire, contentsToWire, contentToWire, isMessage, messageFromWire, messageToWire,
  textOf, undecodedIn, user,
} from "./content.js";
import { display } from "./display.js";
import type { Content, Message, Meta, ResourceContents } from "./types/content.js";
import { isObject } from "./values.js";

type Wire = Readonly<Record<string, unknown>>;

/**
 * The result of a tool. A handler returns one to set every member itself. Spec: Server Features › Tools › Tool result.
 *
 * @example
 * ```ts
 * import { ToolResult } from "gudgeon";
 *
 * const result = new ToolResult("2 books", { structuredContent: { count: 2 } });
 * console.log(result.text, JSON.stringify(result.data)); // 2 books {"count":2}
 * ```
 */
export class ToolResult<D = unknown> {
  readonly content: readonly Content[];
  readonly structuredContent: unknown;
  /** Default: false. */
  readonly isError: boolean;
  readonly meta: Meta;
  /**
   * The structured content; without structured content, the text as it is. A call's `output` schema validates it; if it refuses
   * the text, it validates the JSON in it. Integers that a number can't hold, beyond 2^53 - 1, are BigInts; dates, decimals and bytes
   * are strings, as in JSON; a Standard Schema in `output` may convert them. A Gudgeon server marks text that stands for structured content in revisions that can't carry that, so that
   * `data` is the same in every revision.
   */
  readonly data: D;
  /** All text content, joined by line breaks. */
  readonly text: string;

  constructor(
    content: string | Content | readonly (string | Content)[],
    rest: { structuredContent?: unknown; isError?: boolean | undefined; meta?: Meta | undefined } = {},
  ) {
    refuseUnknown("ToolResult", ["structuredContent", "isError", "meta"], rest);
    this.content = listOf(content).map(asContent);
    this.structuredContent = rest.structuredContent;
    this.isError = rest.isError ?? false;
    this.meta = rest.meta ?? {};
    this.text = textOf(this.content);
    this.data = (this.structuredContent === undefined ? this.text : this.structuredContent) as D;
  }
}

/** The result of reading a resource; handlers may return one. Spec: Server Features › Resources › Reading resources. */
export class ResourceResult {
  readonly contents: readonly ResourceContents[];
  /** All text contents, joined by line breaks. */
  readonly text: string;
  /** The first binary contents; empty if there are none. */
  readonly blob: Uint8Array;
  readonly meta: Meta;

  /** Contents given as a string or bytes get the URI of the request. */
  constructor(
    contents: string | Uint8Array | ResourceContents | readonly ResourceContents[],
    rest: { mimeType?: string | undefined; meta?: Meta | undefined } = {},
  ) {
    refuseUnknown("ResourceResult", ["mimeType", "meta"], rest);
    this.contents = listOf(contents).map((one) => {
      const whole = typeof one === "string" ? { uri: "", text: one } : one instanceof Uint8Array ? { uri: "", blob: one } : checkedContents(one);
      return rest.mimeType !== undefined && whole.mimeType === undefined ? { ...whole, mimeType: rest.mimeType } : whole;
    });
    this.text = this.contents.flatMap((one) => (one.text === undefined ? [] : [one.text])).join("\n");
    const binary = this.contents.find((one) => undecodedIn(one) !== undefined || one.blob !== undefined);
    const isUndecoded = binary !== undefined && undecodedIn(binary) !== undefined;
    this.blob = (isUndecoded ? undefined : binary?.blob) ?? new Uint8Array();
    if (isUndecoded) Object.defineProperty(this, "blob", { get: () => binary.blob, enumerable: true, configurable: true });
    this.meta = rest.meta ?? {};
  }
}

/** The result of a prompt; handlers may return one. Spec: Server Features › Prompts. */
export class PromptResult {
  readonly messages: readonly Message[];
  readonly description: string | undefined;

  /** A string becomes a message of the user. */
  constructor(messages: readonly (string | Message)[], rest: { description?: string | undefined } = {}) {
    refuseUnknown("PromptResult", ["description"], rest);
    if (!Array.isArray(messages)) throw new TypeError(`PromptResult: messages must be a list of strings, user(…) and assistant(…), not ${display(messages)}`);
    this.messages = messages.map((one: unknown, index) => {
      if (typeof one === "string") return user(one);
      if (isMessage(one)) return one;
      throw new TypeError(`PromptResult: messages[${index}] must be a string, user(…) or assistant(…), not ${display(one)}`);
    });
    this.description = rest.description;
  }
}

/** Throws a TypeError for a value that is not a resource's contents. */
function checkedContents(one: unknown): ResourceContents {
  if (isObject(one) && typeof one["uri"] === "string") {
    if (undecodedIn(one) !== undefined) return one as unknown as ResourceContents;
    const { text, blob } = one;
    if (text === undefined ? blob instanceof Uint8Array : typeof text === "string") return one as unknown as ResourceContents;
  }
  throw new TypeError(`ResourceResult: contents must be a string, a Uint8Array, { uri, text }, { uri, blob } or a list of these, not ${display(one)}`);
}

brandClass("ToolResult", ToolResult);
brandClass("ResourceResult", ResourceResult);
brandClass("PromptResult", PromptResult);

// ── the wire ────────────────────────────────────────────────────────────────────────────────────────

/** Writes a result class; another value stays. */
export function resultToWire(value: unknown): unknown {
  if (value instanceof ToolResult) return toolResultToWire(value);
  if (value instanceof ResourceResult) return resourceResultToWire(value);
  return value instanceof PromptResult ? promptResultToWire(value) : value;
}

export function toolResultToWire(result: ToolResult): Wire {
  return {
    content: result.content.map(contentToWire),
    ...(result.structuredContent !== undefined && { structuredContent: result.structuredContent }),
    ...(result.isError && { isError: true }),
    ...metaToWire(result.meta),
  };
}

/** Reads a result. `data` is its structured content, unwrapped by the core; default: the structured content itself. */
export function toolResultFromWire(raw: Wire, ...data: [unknown?]): ToolResult {
  const result = new ToolResult(contentListFromWire(raw["content"] ?? []), {
    structuredContent: raw["structuredContent"],
    isError: raw["isError"] === true,
    meta: metaFromWire(raw),
  });
  return data.length === 0 ? result : withData(result, data[0]);
}

/** Returns the same result with other data. */
export function withData<D>(result: ToolResult, data: D): ToolResult<D> {
  return Object.defineProperty(result, "data", { value: data, enumerable: true, configurable: true }) as ToolResult<D>;
}

export function resourceResultToWire(result: ResourceResult): Wire {
  return { contents: result.contents.map(contentsToWire), ...metaToWire(result.meta) };
}

export function resourceResultFromWire(raw: Wire): ResourceResult {
  const contents = Array.isArray(raw["contents"]) ? raw["contents"].filter(isObject) : [];
  return new ResourceResult(contents.map(contentsFromWire), { meta: metaFromWire(raw) });
}

export function promptResultToWire(result: PromptResult): Wire {
  return {
    messages: result.messages.flatMap(messageToWire),
    ...(result.description !== undefined && { description: result.description }),
  };
}

export function promptResultFromWire(raw: Wire): PromptResult {
  const messages = Array.isArray(raw["messages"]) ? raw["messages"].filter(isObject) : [];
  const description = typeof raw["description"] === "string" ? raw["description"] : undefined;
  return new PromptResult(messages.map(messageFromWire), { description });
}

function metaToWire(meta: Meta): Wire {
  return Object.keys(meta).length === 0 ? {} : { _meta: meta };
}

function metaFromWire(raw: Wire): Meta {
  return isObject(raw["_meta"]) ? raw["_meta"] : {};
}

function listOf<T>(value: T | readonly T[]): readonly T[] {
  return Array.isArray(value) ? value : [value as T];
}
