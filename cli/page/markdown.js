// @ts-check
// A part of Markdown as elements: headings, paragraphs, lists, quotes, tables, code, emphasis and links to web pages.
// Anything else, HTML and images among it, stays the text that it is.

import { add, h, link } from "./dom.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+-]*)\s*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(\s*\1){2,}\s*$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DIVIDER = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
/** Longer texts are shown as they are. */
const MAX_LENGTH = 100_000;
/** The time to find marks in a line grows with the square of its length. */
const MAX_LINE = 2_000;
const MAX_DEPTH = 8;

/**
 * Returns the elements of a string.
 * @param {string} text
 * @returns {HTMLElement}
 */
export function markdown(text) {
  if (text.length > MAX_LENGTH) return h("pre", {}, text);
  const element = h("div", { class: "markdown" });
  blocks(element, text.split(/\r?\n/), 0);
  return element;
}

/**
 * @param {Element} parent
 * @param {string[]} lines
 * @param {number} depth
 */
function blocks(parent, lines, depth) {
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (!line.trim()) at += 1;
    else if (FENCE.test(line)) at = fence(parent, lines, at);
    else if (HEADING.test(line)) at = heading(parent, line, at);
    else if (RULE.test(line)) at = rule(parent, at);
    else if (QUOTE.test(line) && depth < MAX_DEPTH) at = quote(parent, lines, at, depth);
    else if (ITEM.test(line) && depth < MAX_DEPTH) at = list(parent, lines, at, depth);
    else if (line.includes("|") && DIVIDER.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("-")) at = table(parent, lines, at);
    else at = paragraph(parent, lines, at);
  }
}

/** @param {Element} parent @param {string[]} lines @param {number} at */
function fence(parent, lines, at) {
  const mark = FENCE.exec(lines[at] ?? "")?.[1] ?? "```";
  let end = at + 1;
  while (end < lines.length && !(lines[end] ?? "").trim().startsWith(mark)) end += 1;
  add(parent, h("pre", { tabindex: "0" }, h("code", {}, lines.slice(at + 1, end).join("\n"))));
  return end + 1;
}

/** @param {Element} parent @param {string} line @param {number} at */
function heading(parent, line, at) {
  const [, marks = "#", text = ""] = HEADING.exec(line) ?? [];
  // The page has headings of its own above these.
  const tag = /** @type {"h4" | "h5" | "h6"} */ (`h${Math.min(marks.length + 3, 6)}`);
  const element = h(tag);
  inline(element, text, 0);
  add(parent, element);
  return at + 1;
}

/** @param {Element} parent @param {number} at */
function rule(parent, at) {
  add(parent, h("hr"));
  return at + 1;
}

/** @param {Element} parent @param {string[]} lines @param {number} at @param {number} depth */
function quote(parent, lines, at, depth) {
  const inner = [];
  for (; at < lines.length && QUOTE.test(lines[at] ?? ""); at += 1) inner.push(QUOTE.exec(lines[at] ?? "")?.[1] ?? "");
  const element = h("blockquote");
  blocks(element, inner, depth + 1);
  add(parent, element);
  return at;
}

/** @param {Element} parent @param {string[]} lines @param {number} at @param {number} depth */
function list(parent, lines, at, depth) {
  const first = ITEM.exec(lines[at] ?? "");
  const indent = first?.[1]?.length ?? 0;
  const isOrdered = /\d/.test(first?.[2] ?? "");
  const start = isOrdered ? Number.parseInt(first?.[2] ?? "1", 10) : null;
  const element = isOrdered ? h("ol", { start: start === 1 ? null : start }) : h("ul");
  while (at < lines.length) {
    const item = ITEM.exec(lines[at] ?? "");
    if (!item || (item[1] ?? "").length !== indent || /\d/.test(item[2] ?? "") !== isOrdered) break;
    const inner = [item[3] ?? ""];
    // Indented lines belong to the item; one empty line may be between them.
    for (at += 1; at < lines.length; at += 1) {
      const line = lines[at] ?? "";
      const next = line.trim() ? line : (lines[at + 1] ?? "");
      if (!next.trim() || next.search(/\S/) <= indent) break;
      inner.push(line.slice(Math.min(line.search(/\S|$/), indent + 2)));
    }
    const entry = h("li");
    if (inner.length === 1) inline(entry, inner[0] ?? "", 0);
    else blocks(entry, inner, depth + 1);
    add(element, entry);
    if (!(lines[at] ?? "").trim() && ITEM.test(lines[at + 1] ?? "")) at += 1;
  }
  add(parent, element);
  return at;
}

/** @param {Element} parent @param {string[]} lines @param {number} at */
function table(parent, lines, at) {
  /** @param {string} line @param {"th" | "td"} tag */
  const row = (line, tag) => {
    const cells = line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
    return h("tr", {}, ...cells.map(cell => {
      const element = h(tag);
      inline(element, cell.trim().replaceAll("\\|", "|"), 0);
      return element;
    }));
  };
  const head = h("thead", {}, row(lines[at] ?? "", "th"));
  const rows = [];
  for (at += 2; at < lines.length && (lines[at] ?? "").includes("|"); at += 1) rows.push(row(lines[at] ?? "", "td"));
  add(parent, h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Table" }, h("table", {}, head, h("tbody", {}, ...rows))));
  return at;
}

/** @param {Element} parent @param {string[]} lines @param {number} at */
function paragraph(parent, lines, at) {
  const text = [];
  for (; at < lines.length; at += 1) {
    const line = lines[at] ?? "";
    const isOther = !line.trim() || FENCE.test(line) || HEADING.test(line) || QUOTE.test(line) || ITEM.test(line);
    if (text.length && isOther) break;
    text.push(line);
  }
  const element = h("p");
  text.forEach((line, index) => {
    inline(element, line.trim(), 0);
    if (index + 1 < text.length) add(element, / {2}$|\\$/.test(line) ? h("br") : " ");
  });
  add(parent, element);
  return at;
}

const INLINE = /(`+)(.+?)\1|!?\[([^\]]{0,500})\]\(<?([^)\s>]{0,2000})>?(?:\s+"[^"]{0,500}")?\)|(\*\*|__)(?=\S)(.+?\S|\S)\5|(\*|_)(?=\S)(.+?\S|\S)\7|~~(?=\S)(.+?)~~|(https?:\/\/[^\s<>()]{1,2000}[^\s<>().,;:!?'"])|\\([\\`*_{}[\]()#+.!|~-])/;

/**
 * @param {Element} parent
 * @param {string} text
 * @param {number} depth
 */
function inline(parent, text, depth) {
  while (text) {
    const found = depth < MAX_DEPTH && text.length <= MAX_LINE ? INLINE.exec(text) : null;
    if (!found) {
      add(parent, text);
      return;
    }
    const [whole, , code, label, url, , strong, , emphasis, removed, bare, escaped] = found;
    add(parent, text.slice(0, found.index));
    if (code !== undefined) add(parent, h("code", {}, code.trim()));
    else if (url !== undefined) add(parent, link(url, label || url));
    else if (bare !== undefined) add(parent, link(bare));
    else if (escaped !== undefined) add(parent, escaped);
    else if (strong !== undefined) nested(parent, "strong", strong, depth);
    else if (emphasis !== undefined) nested(parent, "em", emphasis, depth);
    else if (removed !== undefined) nested(parent, "s", removed, depth);
    text = text.slice(found.index + whole.length);
  }
}

/** @param {Element} parent @param {"strong" | "em" | "s"} tag @param {string} text @param {number} depth */
function nested(parent, tag, text, depth) {
  const element = h(tag);
  inline(element, text, depth + 1);
  add(parent, element);
}
