import { isMarked, mark } from "./brand.js";
import { display } from "./display.js";
import { McpError } from "./mcp-error.js";
import type {
  AudioContent, Content, ContentMark, EmbeddedResource, ImageContent, Message, Meta, Other, ResourceContents, ResourceLink,
  TextContent, ToolOutcome, ToolUse,
} from "./types/content.js";
import { isObject } from "./values.js";

const CONTENT = Symbol.for("gudgeon.content");
/** The member of an object whose bytes could not be decoded: the string that was received in their place. */
const UNDECODED = Symbol.for("gudgeon.undecoded");
const MESSAGE = Symbol.for("gudgeon.message");

type Unmarked<T> = Omit<T, ContentMark>;

function made<T extends Content>(fields: Unmarked<T>): T {
  return mark(fields, CONTENT) as T;
}

/** Makes text content. Throws a TypeError unless the value is a string. Spec: Server Features › Tools › Text content. */
export function text(value: string): TextContent {
  return made<TextContent>({ type: "text", text: checkedText(value, "text() takes a string") });
}

/**
 * Makes image content. Spec: Server Features › Tools › Image content.
 *
 * @param format - `"png"`, `"jpeg"`, … or a whole media type.
 * @throws TypeError when the data is not a `Uint8Array`, or the format not a string.
 *
 * @example
 * ```ts
 * import { image } from "gudgeon";
 *
 * console.log(image(new Uint8Array([137, 80]), "png").mimeType); // image/png
 * ```
 */
export function image(data: Uint8Array, format: string): ImageContent {
  return made<ImageContent>({ type: "image", data: bytesOf(data, "image()"), mimeType: mediaType("image", format) });
}

/**
 * Makes audio content. Spec: Server Features › Tools › Audio content (2025-03-26 and later).
 *
 * @param format - `"wav"`, `"mp3"`, … or a whole media type.
 * @throws TypeError when the data is not a `Uint8Array`, or the format not a string.
 */
export function audio(data: Uint8Array, format: string): AudioContent {
  return made<AudioContent>({ type: "audio", data: bytesOf(data, "audio()"), mimeType: mediaType("audio", format) });
}

/**
 * Reads a file into an embedded resource: as text if its bytes are UTF-8, else as bytes.
 *
 * @throws The error of node:fs when the file can't be read.
 */
export async function file(path: string | URL): Promise<EmbeddedResource> {
  const { readFile } = await import("node:fs/promises");
  const { pathToFileURL } = await import("node:url");
  const data = await readFile(path);
  const uri = path instanceof URL ? path.href : pathToFileURL(path).href;
  const known = FILE_TYPES[/\.([^./]+)$/.exec(uri)?.[1]?.toLowerCase() ?? ""];
  const decoded = decodeUtf8(data);
  return decoded === undefined
    ? embed({ uri, mimeType: known ?? "application/octet-stream", blob: new Uint8Array(data) })
    : embed({ uri, mimeType: known ?? "text/plain", text: decoded });
}

/**
 * Makes a link to a resource that the client may read. Spec: Tools › Resource links (2025-06-18 and later).
 *
 * @throws TypeError when the URI or the name is not a string.
 *
 * @example
 * ```ts
 * import { resourceLink } from "gudgeon";
 *
 * console.log(resourceLink({ uri: "shelf://1", name: "Dune" }).name); // Dune
 * ```
 */
export function resourceLink(link: Omit<ResourceLink, "type" | ContentMark>): ResourceLink {
  checkedText(link?.uri, "resourceLink({ uri, name }) needs the URI as a string");
  checkedText(link.name, "resourceLink({ uri, name }) needs the name as a string");
  return made<ResourceLink>({ ...link, type: "resource_link" });
}

/**
 * Embeds a resource's contents in a result. Spec: Server Features › Tools › Embedded resources.
 *
 * @throws TypeError when the URI is not a string, or there is neither text nor blob.
 */
export function embed(resource: ResourceContents): EmbeddedResource {
  checkedText(resource?.uri, "embed({ uri, text }) needs the URI as a string");
  if (resource.blob === undefined) checkedText(resource.text, "embed({ uri, text }) needs text or, as bytes, blob");
  return made<EmbeddedResource>({ type: "resource", resource });
}

/**
 * Makes the model's request to call a tool, for the result of `onSample`. Spec: Client Features › Sampling › Sampling with
 * tools (2025-11-25 and later).
 *
 * @param use - `id`: the id that the tool's outcome refers to. `input`: the tool's arguments.
 */
export function toolUse(use: Omit<ToolUse, "type" | ContentMark>): ToolUse {
  return made<ToolUse>({ ...use, type: "tool_use" });
}

/**
 * Makes a tool's outcome, for the next `ctx.sample`. Spec: Client Features › Sampling › Sampling with tools (2025-11-25 and
 * later).
 *
 * @param outcome - `toolUseId`: the `id` of the model's request. `content`: a string becomes text content.
 * @throws TypeError when the content is neither a string nor content.
 *
 * @example
 * ```ts
 * import { assistant, toolOutcome, toolUse, user } from "gudgeon";
 *
 * // The model's request from ctx.sample("2 + 3?", { tools }) and the tool's outcome both go into the next ctx.sample.
 * const wanted = toolUse({ id: "call-1", name: "add", input: { a: 2, b: 3 } });
 * const messages = [user("2 + 3?"), assistant(wanted), user(toolOutcome({ toolUseId: wanted.id, content: "5" }))];
 * console.log(messages.map(({ content }) => ("type" in content ? content.type : "")).join()); // text,tool_use,tool_result
 * ```
 */
export function toolOutcome(
  outcome: Omit<ToolOutcome, "type" | "content" | ContentMark> & { content: string | Content | readonly (string | Content)[] },
): ToolOutcome {
  const { content } = outcome;
  return made<ToolOutcome>({ ...outcome, type: "tool_result", content: isList(content) ? content.map(asContent) : [asContent(content)] });
}

/** Makes content of a type unknown to this package; it is sent unchanged. */
export function other(raw: Readonly<Record<string, unknown>>): Other {
  return made<Other>({ type: "other", raw });
}

/**
 * Makes a message of the user; a string becomes text content. Spec: Server Features › Prompts › PromptMessage.
 *
 * @example
 * ```ts
 * import { assistant, PromptResult, user } from "gudgeon";
 *
 * const result = new PromptResult([user("Review Emma."), assistant("Gladly.")]);
 * console.log(result.messages[1]?.role); // assistant
 * ```
 */
export function user(content: string | Content | readonly (string | Content)[]): Message {
  return message("user", content);
}

/** Makes a message of the assistant; a string becomes text content. */
export function assistant(content: string | Content | readonly (string | Content)[]): Message {
  return message("assistant", content);
}

function message(role: Message["role"], given: string | Content | readonly (string | Content)[]): Message {
  const content = isList(given) ? given.map(asContent) : asContent(given);
  return mark({ role, content, text: textOf(isList(content) ? content : [content]) }, MESSAGE);
}

export function isContent(value: unknown): value is Content {
  return isMarked(value, CONTENT);
}

export function isMessage(value: unknown): value is Message {
  return isMarked(value, MESSAGE);
}

/** Returns content: a string becomes text content; any other value must be made by one of the functions above. */
export function asContent(value: unknown): Content {
  if (typeof value === "string") return text(value);
  if (isContent(value)) return value;
  throw new TypeError(`content must be a string or made by text(), image(), audio(), file(), resourceLink() or embed(), not ${display(value)}`);
}

/** Returns all texts, joined by line breaks. */
export function textOf(content: readonly Content[]): string {
  return content.flatMap((one) => (one.type === "text" ? [one.text] : [])).join("\n");
}

// ── the wire ────────────────────────────────────────────────────────────────────────────────────────

type Wire = Readonly<Record<string, unknown>>;

/** Returns content in the wire format of the newest revision. */
export function contentToWire(content: Content): Wire {
  const { annotations, meta } = content;
  return { ...bodyToWire(content), ...(annotations && { annotations }), ...(meta && { _meta: meta }) };
}

function bodyToWire(content: Content): Wire {
  switch (content.type) {
    case "text":
      return { type: "text", text: content.text };
    case "image":
    case "audio":
      return { type: content.type, data: undecodedIn(content) ?? toBase64(content.data), mimeType: content.mimeType };
    case "resource":
      return { type: "resource", resource: contentsToWire(content.resource) };
    case "tool_result":
      return { ...bare(content), content: content.content.map(contentToWire) };
    case "other":
      return content.raw;
    default:
      return bare(content);
  }
}

function bare(content: Content): Wire {
  const { meta: _, annotations: __, ...fields } = content;
  return fields;
}

/** Returns content from the wire; content of an unknown type or shape is `Other`. */
export function contentFromWire(raw: Wire): Content {
  const common = commonFromWire(raw);
  const { type, _meta: _, annotations: __, ...fields } = raw;
  const has = (...names: string[]) => names.every((name) => typeof raw[name] === "string");
  switch (type) {
    case "text":
      if (has("text")) return made<TextContent>({ ...(fields as { text: string }), type, ...common });
      break;
    case "image":
    case "audio":
      if (has("data", "mimeType")) {
        const { data, mimeType } = fields as { data: string; mimeType: string };
        const bytes = fromBase64(data);
        const media = made<ImageContent | AudioContent>({ type, data: bytes ?? NONE, mimeType, ...common } as Unmarked<ImageContent>);
        return bytes ? media : withUndecoded(media, "data", data);
      }
      break;
    case "resource_link":
      if (has("uri", "name")) return made<ResourceLink>({ ...(fields as { uri: string; name: string }), type, ...common });
      break;
    case "resource":
      if (isObject(raw["resource"]) && typeof raw["resource"]["uri"] === "string")
        return made<EmbeddedResource>({ type, resource: contentsFromWire(raw["resource"]), ...common });
      break;
    case "tool_use":
      if (has("id", "name") && isObject(raw["input"]))
        return made<ToolUse>({ ...(fields as { id: string; name: string; input: Wire }), type, ...common });
      break;
    case "tool_result":
      if (has("toolUseId")) {
        const inner = contentListFromWire(raw["content"]);
        return made<ToolOutcome>({ ...(fields as { toolUseId: string }), type, content: inner, ...common });
      }
      break;
  }
  return other(raw);
}

/** Returns a list of content from one object or a list; other values are left out. */
export function contentListFromWire(raw: unknown): Content[] {
  return (Array.isArray(raw) ? raw : [raw]).filter(isObject).map(contentFromWire);
}

/** Returns contents in the wire format. Without a URI of their own, the core adds the requested one. */
export function contentsToWire(contents: ResourceContents): Wire {
  const { uri, mimeType, text, meta } = contents;
  const undecoded = undecodedIn(contents);
  const blob = undecoded ?? (contents.blob && toBase64(contents.blob));
  const what = blob === undefined ? { text: text ?? "" } : { blob };
  return {
    ...(uri !== "" && { uri }),
    ...(mimeType !== undefined && { mimeType }),
    ...what,
    ...(meta && { _meta: meta }),
  };
}

export function contentsFromWire(raw: Wire): ResourceContents {
  const { uri, text, blob, _meta: meta, ...fields } = raw;
  const bytes = typeof blob === "string" ? fromBase64(blob) : undefined;
  const contents: ResourceContents = {
    ...fields,
    uri: typeof uri === "string" ? uri : "",
    ...(typeof blob === "string" ? { blob: bytes ?? NONE } : { text: typeof text === "string" ? text : "" }),
    ...(isObject(meta) && { meta }),
  };
  return typeof blob === "string" && !bytes ? withUndecoded(contents, "blob", blob) : contents;
}

/** Returns one message for each piece of content, since a prompt's message holds only one. */
export function messageToWire(value: Message): Wire[] {
  const pieces = isList(value.content) ? value.content : [value.content];
  return pieces.map((piece) => ({ role: value.role, content: contentToWire(piece) }));
}

export function messageFromWire(raw: Wire): Message {
  const content = contentListFromWire(raw["content"]);
  const given = Array.isArray(raw["content"]) ? content : (content[0] ?? text(""));
  return message(raw["role"] === "assistant" ? "assistant" : "user", given);
}

function commonFromWire(raw: Wire): { annotations?: Exclude<Content["annotations"], undefined>; meta?: Meta } {
  const { annotations, _meta: meta } = raw;
  return { ...(isObject(annotations) && { annotations }), ...(isObject(meta) && { meta }) };
}

// ── bytes ───────────────────────────────────────────────────────────────────────────────────────────

export function toBase64(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64");
}

/** Returns undefined for a string that is not base64, apart from whitespace. Padding may be missing, and the URL alphabet is read too. */
function fromBase64(data: string): Uint8Array | undefined {
  const bytes = Buffer.from(data, "base64");
  // Node leaves out the characters that are not base64.
  const isWhole = bytes.length === decodedLength(data) || bytes.length === decodedLength(data.replace(/\s+/g, ""));
  return isWhole ? new Uint8Array(bytes) : undefined;
}

/** Returns the number of bytes that a base64 string encodes; -1 if no base64 string has its length. */
function decodedLength(data: string): number {
  let end = data.length;
  while (end > 0 && data[end - 1] === "=") end--;
  return end % 4 === 1 ? -1 : Math.floor((end * 3) / 4);
}

const NONE = new Uint8Array();

/** Makes reading a member an error: the string in its place is not base64. Other members of the result can still be used. */
function withUndecoded<T extends object>(owner: T, name: string, data: string): T {
  const get = (): never => {
    throw new McpError("the base64 that was received is invalid", { kind: "protocol" });
  };
  Object.defineProperty(owner, UNDECODED, { value: data });
  return Object.defineProperty(owner, name, { get, enumerable: true, configurable: true });
}

/** Returns the string that was received in place of base64; undefined if the base64 was valid. */
export function undecodedIn(owner: object): string | undefined {
  return (owner as { [UNDECODED]?: string })[UNDECODED];
}

function bytesOf(data: unknown, place: string): Uint8Array {
  if (data instanceof Uint8Array) return data;
  throw new TypeError(`${place} takes bytes as a Uint8Array, not ${display(data)}; for a path use file(), or read the file first`);
}

/** Throws a TypeError unless the value is a string: in JavaScript no compiler checks it. */
function checkedText(value: unknown, problem: string): string {
  if (typeof value === "string") return value;
  throw new TypeError(`${problem}, not ${value === null ? "null" : Array.isArray(value) ? "a list" : typeof value}`);
}

function decodeUtf8(data: Uint8Array): string | undefined {
  if (data.includes(0)) return undefined;
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(data);
  } catch {
    return undefined;
  }
}

function mediaType(family: "image" | "audio", format: string): string {
  checkedText(format, `${family}(data, format) takes the format as a string, such as "${family === "image" ? "png" : "wav"}" or a media type`);
  if (format.includes("/")) return format;
  const name = format.replace(/^\./, "").toLowerCase();
  return `${family}/${SUBTYPES[name] ?? name}`;
}

function isList<T>(value: T | readonly T[]): value is readonly T[] {
  return Array.isArray(value);
}

const SUBTYPES: Readonly<Record<string, string>> = { jpg: "jpeg", svg: "svg+xml", mp3: "mpeg", m4a: "mp4" };

const FILE_TYPES: Readonly<Record<string, string>> = {
  txt: "text/plain",
  md: "text/markdown",
  html: "text/html",
  css: "text/css",
  csv: "text/csv",
  js: "text/javascript",
  json: "application/json",
  xml: "application/xml",
  yaml: "application/yaml",
  pdf: "application/pdf",
  zip: "application/zip",
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  svg: "image/svg+xml",
  mp3: "audio/mpeg",
  wav: "audio/wav",
  ogg: "audio/ogg",
};
