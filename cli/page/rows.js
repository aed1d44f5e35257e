// @ts-check
// A list of rows with one or two texts each, such as headers and roots.

import { button, h } from "./dom.js";

/**
 * @typedef {{ name: string, value: string | null }} Row
 */

/**
 * Returns a fieldset with rows.
 * @param {string} legend
 * @param {{ name: string, value: string, secret?: boolean }} labels
 * @param {Row[]} rows Values that are null are kept by the program, and not shown.
 */
export function rowEditor(legend, labels, rows) {
  /** @type {Map<HTMLElement, () => Row>} */
  const entries = new Map();
  const list = h("div");
  /** @param {Row} row */
  const addRow = row => {
    const name = h("input", { type: "text", "aria-label": labels.name, placeholder: labels.name, autocomplete: "off", spellcheck: "false", value: row.name });
    const isKept = row.value === null;
    const value = h("input", {
      type: labels.secret ? "password" : "text",
      "aria-label": labels.value,
      placeholder: isKept ? "unchanged" : labels.value,
      autocomplete: "off",
      spellcheck: "false",
      value: row.value ?? "",
    });
    const element = h("div", { class: "row" }, name, value, button("Remove", () => {
      entries.delete(element);
      element.remove();
    }, { class: "small", "aria-label": `Remove ${row.name || "this row"}` }));
    entries.set(element, () => ({ name: name.value.trim(), value: isKept && !value.value && name.value === row.name ? null : value.value }));
    list.append(element);
    return name;
  };
  rows.forEach(addRow);
  const element = h("fieldset", {}, h("legend", {}, legend), list, button("Add", () => addRow({ name: "", value: "" }).focus(), { class: "small", "aria-label": `Add to ${legend}` }));
  return { element, read: () => [...entries.values()].map(readRow => readRow()).filter(row => row.name) };
}
