import { contentFromWire, isContent, isMessage, messageFromWire, user } from "./content.js";
import type { Content, Message } from "./types/content.js";
import { isObject } from "./values.js";

/* Content and messages in the shapes of the official SDKs, which are plain objects. */

/** Returns content of this library, or of the official SDKs' shape; undefined for another value. */
export function contentOf(item: unknown, types = BLOCKS): Content | undefined {
  if (isContent(item)) return item;
  if (!isBlock(item, types)) return undefined;
  const content = contentFromWire(item);
  const isWhole = content.type !== "resource" || isContents(item["resource"]);
  return content.type === "other" || !isWhole ? undefined : content;
}

/** Returns a message of a prompt, of this library or of the official SDKs' shape; undefined for another value. */
export function messageOf(item: unknown): Message | undefined {
  if (isMessage(item)) return item;
  if (!isObject(item) || (item["role"] !== "user" && item["role"] !== "assistant")) return undefined;
  return contentOf(item["content"]) === undefined ? undefined : messageFromWire(item);
}

/** Returns a piece of content for or of a model, of this library or of the specification's shape; undefined for another value. */
export function sampledContentOf(item: unknown): Content | undefined {
  return contentOf(item, SAMPLED);
}

/** Returns a message for a model, which may have several pieces of content and the use of tools; undefined for another value. */
export function sampledMessageOf(item: unknown): Message | undefined {
  if (typeof item === "string") return user(item);
  if (isMessage(item)) return item;
  if (!isObject(item) || (item["role"] !== "user" && item["role"] !== "assistant")) return undefined;
  const pieces: unknown[] = Array.isArray(item["content"]) ? item["content"] : [item["content"]];
  return pieces.every(sampledContentOf) ? messageFromWire(item) : undefined;
}

/** Returns true for an object with the type of a content block, whatever else it holds. */
export function isBlock(item: unknown, types = BLOCKS): item is Record<string, unknown> {
  return isObject(item) && types.has(item["type"]);
}

/** Returns true for an object with the members of a resource's contents. */
export function isContents(item: unknown): item is Record<string, unknown> {
  if (!isObject(item) || typeof item["uri"] !== "string") return false;
  return (typeof item["text"] === "string") !== (typeof item["blob"] === "string");
}

const BLOCKS: ReadonlySet<unknown> = new Set(["text", "image", "audio", "resource_link", "resource"]);
const SAMPLED: ReadonlySet<unknown> = new Set(["text", "image", "audio", "tool_use", "tool_result"]);
