// @ts-check
// Results of servers: content blocks, contents of resources, messages, structured data and errors.

import { CallError } from "./api.js";
import { button, copyButton, h, link, media, named, webUrl } from "./dom.js";
import { tree, write } from "./json.js";
import { markdown } from "./markdown.js";

/** @typedef {import("./dom.js").Json} Json */

/** Longer texts are cut until the user wants all. */
const MAX_TEXT = 100_000;

/**
 * Shows the result of a tool.
 * @param {Json} result
 * @param {string} [repeated] The member of the result that is left out, because the other says the same.
 * @param {(uri: string) => void} [read] Reads a linked resource.
 */
export function toolResult(result, repeated, read) {
  const content = Array.isArray(result?.content) ? result.content : [];
  const blocks = repeated === "content" ? content.filter((/** @type {Json} */ block) => block?.type !== "text") : content;
  const structured = repeated === "structuredContent" ? undefined : result?.structuredContent;
  const isError = result?.isError === true;
  return h("div", { class: isError ? "result problem" : "result" },
    isError && h("p", { class: "tag" }, "The tool reports an error"),
    ...blocks.map((/** @type {Json} */ block) => contentBlock(block, read)),
    structured !== undefined && h("section", { "aria-label": "Structured content" }, h("h4", {}, "Structured content"), tree(structured, 3)),
    !blocks.length && structured === undefined && h("p", { class: "empty" }, "The result is empty."),
    raw(result));
}

/**
 * Shows a block of content.
 * @param {Json} block
 * @param {(uri: string) => void} [read]
 * @returns {HTMLElement}
 */
export function contentBlock(block, read) {
  const notes = annotations(block?.annotations);
  switch (block?.type) {
    case "text":
      return h("div", { class: "block" }, notes, textBlock(String(block.text ?? ""), "text/markdown"));
    case "image":
    case "audio":
      return h("div", { class: "block" }, notes, media(String(block.data ?? ""), block.mimeType, block.type));
    case "resource":
      return h("div", { class: "block" }, notes, resourceContent(block.resource));
    case "resource_link":
      return h("div", { class: "block" }, notes, resourceLink(block, read));
    default:
      return h("div", { class: "block" }, h("p", { class: "tag" }, `Content of the type ${String(block?.type)}`), tree(block));
  }
}

/** @param {Json} block @param {((uri: string) => void) | undefined} read */
function resourceLink(block, read) {
  const uri = String(block.uri ?? "");
  return h("div", { class: "resource-link" },
    h("strong", {}, named(block.name, block.title) || uri), " ",
    webUrl(uri) ? link(uri) : h("code", {}, uri), " ",
    block.mimeType && h("span", { class: "tag" }, String(block.mimeType)),
    block.description && h("p", {}, String(block.description)),
    read && button("Read", () => read(uri), { "aria-label": `Read ${uri}` }));
}

/**
 * Shows the content of a resource.
 * @param {Json} content
 */
export function resourceContent(content) {
  const uri = String(content?.uri ?? "");
  const type = content?.mimeType === undefined ? undefined : String(content.mimeType);
  const shown = typeof content?.blob === "string" ? media(content.blob, type, uri) : textBlock(String(content?.text ?? ""), type);
  return h("div", { class: "resource" }, h("p", {}, h("code", {}, uri), " ", type && h("span", { class: "tag" }, type)), shown);
}

/**
 * Shows a message of a prompt or of a sampling request.
 * @param {Json} message
 * @param {(uri: string) => void} [read]
 */
export function message(message, read) {
  const content = Array.isArray(message?.content) ? message.content : [message?.content];
  const role = String(message?.role ?? "?");
  return h("div", { class: "message", role: "group", "aria-label": `Message of the ${role}` },
    h("p", { class: "role" }, role), ...content.map((/** @type {Json} */ block) => contentBlock(block, read)));
}

/**
 * Shows a string, as Markdown or JSON if it is one of them, with a switch to the plain text.
 * @param {string} text
 * @param {string | undefined} type
 */
export function textBlock(text, type) {
  const cut = text.length > MAX_TEXT ? text.slice(0, MAX_TEXT) : text;
  const plain = () => {
    const pre = h("pre", { class: "text", tabindex: "0" }, cut);
    if (cut === text) return pre;
    return h("div", {}, pre, button(`Show all ${text.length} characters`, () => (pre.textContent = text)));
  };
  const rendered = cut === text ? render(text, type) : null;
  if (!rendered) return h("div", { class: "text-block" }, plain(), h("p", { class: "tools" }, copyButton(() => text)));
  const place = h("div", {}, rendered);
  const toggle = button("Plain text", () => {
    const isPlain = toggle.getAttribute("aria-pressed") !== "true";
    toggle.setAttribute("aria-pressed", String(isPlain));
    place.replaceChildren(isPlain ? plain() : rendered);
  }, { "aria-pressed": "false" });
  return h("div", { class: "text-block" }, place, h("p", { class: "tools" }, toggle, copyButton(() => text)));
}

/** @param {string} text @param {string | undefined} type */
function render(text, type) {
  const kind = type?.split(";")[0]?.trim() ?? "text/markdown";
  if (/^[[{]/.test(text.trimStart())) {
    try {
      return tree(JSON.parse(text), 2);
    } catch {
      // It only looks like JSON.
    }
  }
  return kind === "text/markdown" && /[*_`#|>[\]\n]|https?:|^\d+[.)]/.test(text) ? markdown(text) : null;
}

/** @param {Json} notes */
function annotations(notes) {
  if (!notes || typeof notes !== "object") return null;
  const parts = Object.entries(notes).map(([name, value]) => `${name}: ${Array.isArray(value) ? value.join(", ") : String(value)}`);
  return h("p", { class: "tags" }, ...parts.map(part => h("span", { class: "tag" }, part)));
}

/**
 * Returns the result as the server sent it, closed at first.
 * @param {Json} result
 */
export function raw(result) {
  const details = h("details", { class: "raw" }, h("summary", {}, "JSON"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(tree(result, 3), h("p", { class: "tools" }, copyButton(() => write(result))));
  });
  return details;
}

/**
 * Shows the reason why a call failed.
 * @param {unknown} error
 */
export function failure(error) {
  const details = error instanceof CallError ? error.details : { kind: "problem", message: String(error) };
  return describe(details);
}

/**
 * Shows an error as the program describes it.
 * @param {Json} details
 */
export function describe(details) {
  /** @param {string} name @param {Json} value */
  const row = (name, value) => (value === null || value === undefined ? null : h("div", {}, h("dt", {}, name), h("dd", {}, String(value))));
  return h("div", { class: "problem", role: "alert" },
    h("p", {}, h("strong", {}, `${details.kind}: `), String(details.message)),
    details.hint && h("p", {}, `Hint: ${details.hint}`),
    h("dl", {}, row("Phase", details.phase), row("Code", details.code), row("HTTP status", details.httpStatus), row("Exit status", details.exitStatus)),
    details.data !== null && details.data !== undefined && tree(details.data),
    details.stderr && h("pre", { "aria-label": "Standard error of the server", tabindex: "0" }, String(details.stderr)));
}
