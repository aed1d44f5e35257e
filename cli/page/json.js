// @ts-check
// JSON as servers write it: numbers keep their digits, and long values are shown piece by piece.

import { button, formatSize, h } from "./dom.js";

/** @typedef {import("./dom.js").Json} Json */

const MAX_SHOWN = 200;
const MAX_TEXT = 2000;

/**
 * Numbers that JavaScript would change. Browsers without it show them changed.
 * @type {{ rawJSON?: (text: string) => Json, isRawJSON?: (value: unknown) => boolean }}
 */
const exact = /** @type {Json} */ (JSON);

/**
 * Parses JSON. Numbers that JavaScript would change are kept as they are written.
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  /** @param {string} _ @param {Json} value @param {{ source?: string }} [context] */
  const keep = (_, value, context) => {
    if (typeof value !== "number" || !context?.source || Number.isSafeInteger(value)) return value;
    return JSON.stringify(value) === context.source ? value : number(context.source);
  };
  return JSON.parse(text, keep);
}

/**
 * Returns a number as JSON has it.
 * @param {string} text
 * @returns {Json}
 */
export function number(text) {
  const value = Number(text);
  const isExact = Number.isSafeInteger(value) || JSON.stringify(value) === text;
  return isExact || !exact.rawJSON ? value : exact.rawJSON(text);
}

/** @param {Json} value */
export function isNumber(value) {
  return typeof value === "number" || exact.isRawJSON?.(value) === true;
}

/**
 * Returns a value as indented JSON.
 * @param {Json} value
 * @returns {string}
 */
export function write(value) {
  return JSON.stringify(value, null, 2) ?? "";
}

/**
 * Shows a value as a tree whose branches can be closed.
 * @param {Json} value
 * @param {number} [open] The levels that are open at first.
 * @returns {HTMLElement}
 */
export function tree(value, open = 2) {
  return h("div", { class: "tree" }, node(value, open));
}

/**
 * @param {Json} value
 * @param {number} open
 * @param {string} [key]
 * @returns {HTMLElement}
 */
function node(value, open, key) {
  const name = key === undefined ? null : h("span", { class: "key" }, key, ": ");
  if (value === null || typeof value !== "object" || isNumber(value)) return h("div", {}, name, leaf(value));
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const [start, end] = isList ? ["[", "]"] : ["{", "}"];
  if (!entries.length) return h("div", {}, name, h("span", { class: "mark" }, start + end));
  const summary = h("summary", {}, name, h("span", { class: "mark" }, `${start} ${entries.length} ${end}`));
  const details = h("details", { open: open > 0 }, summary);
  // The children are made when they are seen first.
  const show = () => {
    if (!details.open || details.childElementCount > 1) return;
    details.append(branch(entries, isList, open - 1));
  };
  details.addEventListener("toggle", show);
  show();
  return details;
}

/**
 * @param {[string, Json][]} entries
 * @param {boolean} isList
 * @param {number} open
 */
function branch(entries, isList, open) {
  const list = h("div", { class: "branch" });
  let shown = 0;
  const more = button("", () => next());
  const next = () => {
    more.remove();
    for (const [key, value] of entries.slice(shown, shown + MAX_SHOWN)) {
      list.append(node(value, open, isList ? undefined : key));
    }
    shown += MAX_SHOWN;
    if (shown < entries.length) {
      more.textContent = `Show more (${entries.length - shown})`;
      list.append(more);
    }
  };
  next();
  return list;
}

/** @param {Json} value */
function leaf(value) {
  if (isNumber(value)) return h("span", { class: "number" }, JSON.stringify(value));
  if (typeof value !== "string") return h("span", { class: "word" }, String(value));
  if (value.length <= MAX_TEXT) return h("span", { class: "string" }, JSON.stringify(value));
  const text = h("span", { class: "string" }, JSON.stringify(value.slice(0, MAX_TEXT)), " …");
  const all = button(`Show all (${formatSize(value.length)})`, () => {
    text.textContent = JSON.stringify(value);
    all.remove();
  });
  return h("span", {}, text, " ", all);
}
