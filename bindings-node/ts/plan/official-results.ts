import { contentsFromWire, isContent } from "../model/content.js";
import { contentOf, isBlock, isContents, messageOf } from "../model/official-content.js";
import { PromptResult, ResourceResult, ToolResult } from "../model/results.js";
import type { Meta } from "../model/types/content.js";
import { isObject } from "../model/values.js";

/*
 * The result shapes of the official SDKs, returned as plain objects. A value of exactly that shape becomes a result; one
 * close to it is refused with a TypeError, since sending it as data would hide the mistake; any other value is data.
 */

/** `{ content: […], structuredContent?, isError?, _meta? }` as a `ToolResult`; undefined for data. */
export function officialToolResult(value: unknown): ToolResult | undefined {
  if (!isPlain(value) || !("content" in value)) return undefined;
  const { content, structuredContent, isError, _meta } = value;
  const other = otherThan(value, ["content", "structuredContent", "isError", "_meta"]);
  const isNamed = typeof isError === "boolean" || "structuredContent" in value;
  const isListed = other === undefined && Array.isArray(content) && content.every((item) => isContent(item) || isBlock(item));
  if (!isNamed && !isListed) return undefined;
  const refuse = (problem: string): never => refuseShape("tool", "{ content, isError }", problem, "ToolResult(content, { isError })");
  if (other !== undefined) refuse(`it has the key ${JSON.stringify(other)}`);
  if (isError !== undefined && typeof isError !== "boolean") refuse("isError is not a boolean");
  if (_meta !== undefined && !isObject(_meta)) refuse("_meta is not an object");
  if (!Array.isArray(content)) return refuse("content is not a list");
  const blocks = content.map((item, at) => contentOf(item) ?? refuse(`content[${at}] is not a content block`));
  return new ToolResult(blocks, { structuredContent, isError: isError as boolean | undefined, meta: _meta as Meta | undefined });
}

/** `{ contents: […], _meta? }` as a `ResourceResult`; undefined for data. */
export function officialResourceResult(value: unknown): ResourceResult | undefined {
  if (!isPlain(value) || otherThan(value, ["contents", "_meta"]) !== undefined) return undefined;
  const { contents, _meta } = value;
  if (!Array.isArray(contents) || !contents.every((item) => isObject(item) && "uri" in item)) return undefined;
  const refuse = (problem: string): never => refuseShape("resource", "{ contents }", problem, "ResourceResult(contents)");
  if (_meta !== undefined && !isObject(_meta)) refuse("_meta is not an object");
  const read = contents.map((item, at) =>
    isContents(item) ? contentsFromWire(item) : refuse(`contents[${at}] needs a uri with text, or with blob in base64, as strings`),
  );
  return new ResourceResult(read, { meta: _meta as Meta | undefined });
}

/** `{ messages: […], description? }` as a `PromptResult`; undefined for what is something else. */
export function officialPromptResult(value: unknown): PromptResult | undefined {
  if (!isPlain(value) || !Array.isArray(value["messages"])) return undefined;
  const { messages, description } = value as { messages: readonly unknown[]; description?: unknown };
  const refuse = (problem: string): never => refuseShape("prompt", "{ messages, description }", problem, "PromptResult(messages, { description })");
  const other = otherThan(value, ["messages", "description", "_meta"]);
  if (other !== undefined) refuse(`it has the key ${JSON.stringify(other)}`);
  if (description !== undefined && typeof description !== "string") refuse("description is not a string");
  const read = messages.map((item, at) => messageOf(item) ?? refuse(`messages[${at}] needs role, "user" or "assistant", and content`));
  return new PromptResult(read, { description: description as string | undefined });
}

/** Returns false for instances of classes, which are data or refused elsewhere. */
function isPlain(value: unknown): value is Record<string, unknown> {
  return isObject(value) && Object.getPrototypeOf(value) === Object.prototype;
}

function otherThan(value: object, known: readonly string[]): string | undefined {
  return Object.keys(value).find((key) => !known.includes(key));
}

function refuseShape(kind: string, shape: string, problem: string, ours: string): never {
  throw new TypeError(
    `the result looks like the ${kind} result ${shape}, but ${problem}; return new ${ours}, or data under other names`,
  );
}
