// @ts-check
// The panel of tools.

import { toolResult } from "./content.js";
import { h, named } from "./dom.js";
import { schemaForm } from "./form.js";
import { tree } from "./json.js";
import { heading, listPanel, outcome } from "./lists.js";

/** @typedef {import("./dom.js").Json} Json */

/** @type {[string, string][]} */
const HINTS = [["readOnlyHint", "read-only"], ["destructiveHint", "destructive"], ["idempotentHint", "idempotent"], ["openWorldHint", "open world"]];

/** @param {(uri: string) => void} read Reads a resource. */
export function toolsPanel(read) {
  return listPanel("Tools", "tools", [{
    list: "tools",
    label: "Tools",
    capability: "tools",
    key: tool => String(tool.name),
    title,
    subtitle: tool => String(tool.description ?? ""),
    show: tool => detail(tool, read),
  }]);
}

/** @param {Json} tool */
function title(tool) {
  return named(tool.name, tool.title ?? tool.annotations?.title);
}

/** @param {Json} tool @param {(uri: string) => void} read */
function detail(tool, read) {
  const name = String(tool.name);
  const form = schemaForm(tool.inputSchema ?? {});
  const result = outcome((answer, repeated) => toolResult(answer, repeated, read));
  const send = async () => {
    const read = form.read();
    if (!read) return;
    call.disabled = true;
    await result.run({ callTool: { name, arguments: read.value } });
    call.disabled = false;
  };
  const call = h("button", { type: "submit", class: "primary" }, "Call");
  const element = h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    void send();
  }, keydown: (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      void send();
    }
  } }, form.element, h("div", { class: "row" }, call, form.toggle, h("span", { class: "hint" }, "Ctrl + Enter calls")));
  const badges = HINTS.filter(([hint]) => typeof tool.annotations?.[hint] === "boolean").map(([hint, label]) => (tool.annotations[hint] ? label : `not ${label}`));
  return h("div", {},
    heading(title(tool), null, tool.description, ...badges), element, result.element, definition(tool));
}

/**
 * Returns the definition of an entry as the server sent it, closed at first.
 * @param {Json} item
 */
export function definition(item) {
  const details = h("details", { class: "raw" }, h("summary", {}, "Definition"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount === 1) details.append(tree(item, 4));
  });
  return details;
}
