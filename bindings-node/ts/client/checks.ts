/*
 * Checks of what a server sent, before values with TypeScript's types are made of it. An optional member that is null is removed
 * from the object, which was parsed for this purpose; members and types that are unknown are left as they are.
 */

import { typeName } from "../model/display.js";
import { isObject } from "../model/values.js";

/** A received value that does not have the type that the specification gives it. */
export class InvalidMember extends Error {
  /** @param path - The place in the result, such as `content[0].text`; empty for the result itself. */
  constructor(
    readonly path: string,
    readonly problem: string,
  ) {
    super(path === "" ? problem : `${path} ${problem}`);
  }

  /** Returns the same for a value of which this one is a part, under this name. */
  within(name: string): InvalidMember {
    const { path, problem } = this;
    return new InvalidMember(path === "" ? name : path.startsWith("[") ? name + path : `${name}.${path}`, problem);
  }
}

/** A type, and the check of what a value of it contains. */
interface Kind {
  readonly name: string;
  is(value: unknown): boolean;
  readonly inside?: (value: never) => void;
}

type Member = readonly [name: string, kind: Kind, isRequired: boolean];

const STRING: Kind = { name: "a string", is: (value) => typeof value === "string" };
const NUMBER: Kind = { name: "a number", is: (value) => typeof value === "number" };
const BOOLEAN: Kind = { name: "a boolean", is: (value) => typeof value === "boolean" };
const OBJECT: Kind = { name: "an object", is: isObject };
const STRINGS: Kind = { name: "a list of strings", is: (value) => Array.isArray(value) && value.every((one) => typeof one === "string") };
const ROLE: Kind = { name: '"user" or "assistant"', is: isRole };
const ROLES: Kind = { name: 'a list of "user" and "assistant"', is: (value) => Array.isArray(value) && value.every(isRole) };

const ICONS = listOf([required("src", STRING), optional("mimeType", STRING), optional("sizes", STRINGS), optional("theme", STRING)]);
const ANNOTATIONS = objectOf([optional("audience", ROLES), optional("priority", NUMBER), optional("lastModified", STRING)]);
const TOOL_ANNOTATIONS = objectOf([
  optional("title", STRING),
  optional("readOnlyHint", BOOLEAN),
  optional("destructiveHint", BOOLEAN),
  optional("idempotentHint", BOOLEAN),
  optional("openWorldHint", BOOLEAN),
]);
const NOTES = [optional("annotations", ANNOTATIONS), optional("_meta", OBJECT)];
const COMPONENT = [
  required("name", STRING),
  optional("title", STRING),
  optional("description", STRING),
  optional("icons", ICONS),
  optional("_meta", OBJECT),
];
const RESOURCE = [...COMPONENT, optional("mimeType", STRING), optional("annotations", ANNOTATIONS)];
const MEDIA = [required("data", STRING), required("mimeType", STRING), ...NOTES];
const CONTENTS = [optional("mimeType", STRING), optional("text", STRING), optional("blob", STRING), optional("_meta", OBJECT)];
const EMBEDDED: Kind = { ...OBJECT, inside: (value) => checkContents(value, true) };
const CONTENT_LIST: Kind = { name: "a list", is: Array.isArray, inside: each(checkContent) };

const CONTENT: ReadonlyMap<unknown, readonly Member[]> = new Map([
  ["text", [required("text", STRING), ...NOTES]],
  ["image", MEDIA],
  ["audio", MEDIA],
  ["resource_link", [required("uri", STRING), ...RESOURCE, optional("size", NUMBER)]],
  ["resource", [required("resource", EMBEDDED), ...NOTES]],
  ["tool_use", [required("id", STRING), required("name", STRING), required("input", OBJECT), ...NOTES]],
  ["tool_result", [required("toolUseId", STRING), required("content", CONTENT_LIST), optional("isError", BOOLEAN), ...NOTES]],
]);
const TYPED = [required("type", STRING)];
const MESSAGE = [required("role", ROLE)];
const ONE_CONTENT: Kind = { ...OBJECT, inside: checkContent };

/** Checks an entry of `tools/list`. */
export const checkTool = checkOf([
  ...COMPONENT, required("inputSchema", OBJECT), optional("outputSchema", OBJECT), optional("annotations", TOOL_ANNOTATIONS),
]);
/** Checks an entry of `resources/list`. */
export const checkResource = checkOf([required("uri", STRING), ...RESOURCE, optional("size", NUMBER)]);
/** Checks an entry of `resources/templates/list`. */
export const checkResourceTemplate = checkOf([required("uriTemplate", STRING), ...RESOURCE]);
/** Checks an entry of `prompts/list`. */
export const checkPrompt = checkOf([
  ...COMPONENT,
  optional("arguments", listOf([required("name", STRING), optional("title", STRING), optional("description", STRING), optional("required", BOOLEAN)])),
]);
/** Checks the result of `resources/read`. */
export const checkResourceResult = checkOf([
  required("contents", { name: "a list", is: Array.isArray, inside: each((value) => checkContents(value, false)) }),
]);
/** Checks the result of `prompts/get`. */
export const checkPromptResult = checkOf([
  required("messages", { name: "a list", is: Array.isArray, inside: each(checkMessage) }),
  optional("description", STRING),
]);
/** Checks the result of `completion/complete`. */
export const checkCompletion = checkOf([required("values", STRINGS), optional("total", NUMBER), optional("hasMore", BOOLEAN)]);
/** Checks the params of `sampling/createMessage`. */
export const checkSampleRequest = checkOf([
  optional("messages", { name: "a list", is: Array.isArray, inside: each(checkMessage) }),
  optional("tools", { name: "a list", is: Array.isArray, inside: each(checkTool) }),
]);
/** Checks a result that asks for input. */
export const checkInputRequired = checkOf([
  optional("inputRequests", {
    ...OBJECT,
    inside: (asked: object) => {
      for (const [key, request] of Object.entries(asked)) inMember(key, checkAsked, request);
    },
  }),
  optional("requestState", STRING),
]);
const ASKED = [required("method", STRING), optional("params", OBJECT)];

/** Checks the result of `tools/call`. */
export function checkToolResult({ content }: Readonly<Record<string, unknown>>): void {
  if (content === undefined) return;
  if (!Array.isArray(content)) throw new InvalidMember("content", `must be a list, not ${typeName(content)}`);
  inMember("content", CONTENT_LIST.inside as (value: unknown) => void, content);
}

function checkAsked(request: unknown): void {
  checkMembers(request, ASKED);
  const { method, params } = request as { method: string; params?: object };
  if (method === "sampling/createMessage" && params !== undefined) inMember("params", checkSampleRequest, params);
}

function checkContent(block: unknown): void {
  checkMembers(block, TYPED);
  const members = CONTENT.get((block as { type: string }).type);
  if (members) checkMembers(block, members);
}

/** Checks a resource's contents. The URI is required where no request names it. */
function checkContents(contents: unknown, needsUri: boolean): void {
  checkMembers(contents, needsUri ? EMBEDDED_URI : REQUESTED_URI);
  checkMembers(contents, CONTENTS);
  const { text, blob } = contents as { text?: string; blob?: string };
  if (text === undefined && blob === undefined) throw new InvalidMember("", "must have text or blob");
}
const EMBEDDED_URI = [required("uri", STRING)];
const REQUESTED_URI = [optional("uri", STRING)];

function checkMessage(message: unknown): void {
  checkMembers(message, MESSAGE);
  const { content } = message as { content: unknown };
  checkMembers(message, [required("content", Array.isArray(content) ? CONTENT_LIST : ONE_CONTENT)]);
}

function checkMembers(raw: unknown, members: readonly Member[]): void {
  if (!isObject(raw)) throw new InvalidMember("", `must be an object, not ${typeName(raw)}`);
  for (const [name, kind, isRequired] of members) {
    const value = raw[name];
    if (value === undefined) {
      if (isRequired) throw new InvalidMember(name, "is missing");
    } else if (value === null && !isRequired) {
      delete raw[name];
    } else if (!kind.is(value)) {
      throw new InvalidMember(name, `must be ${kind.name}, not ${typeName(value)}`);
    } else if (kind.inside) {
      inMember(name, kind.inside as (value: unknown) => void, value);
    }
  }
}

/** Runs the check of a part; the path of an invalid member then begins with the name of the part. */
function inMember(name: string, check: (value: unknown) => void, value: unknown): void {
  try {
    check(value);
  } catch (error) {
    throw error instanceof InvalidMember ? error.within(name) : error;
  }
}

function each(check: (value: unknown) => void): (list: readonly unknown[]) => void {
  return (list) => {
    let at = 0;
    try {
      for (; at < list.length; at++) check(list[at]);
    } catch (error) {
      throw error instanceof InvalidMember ? error.within(`[${at}]`) : error;
    }
  };
}

function checkOf(members: readonly Member[]): (value: unknown) => void {
  return (value) => checkMembers(value, members);
}

function objectOf(members: readonly Member[]): Kind {
  return { ...OBJECT, inside: checkOf(members) };
}

function listOf(members: readonly Member[]): Kind {
  return { name: "a list", is: Array.isArray, inside: each(checkOf(members)) };
}

function required(name: string, kind: Kind): Member {
  return [name, kind, true];
}

function optional(name: string, kind: Kind): Member {
  return [name, kind, false];
}

function isRole(value: unknown): boolean {
  return value === "user" || value === "assistant";
}
