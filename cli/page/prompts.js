// @ts-check
// The panel of prompts.

import { message, raw } from "./content.js";
import { completedInputs } from "./completion.js";
import { h, named } from "./dom.js";
import { heading, listPanel, outcome } from "./lists.js";
import { definition } from "./tools.js";

/** @typedef {import("./dom.js").Json} Json */

/** @param {(uri: string) => void} read Reads a resource. */
export function promptsPanel(read) {
  return listPanel("Prompts", "prompts", [{
    list: "prompts",
    label: "Prompts",
    capability: "prompts",
    key: prompt => String(prompt.name),
    title: prompt => named(prompt.name, prompt.title),
    subtitle: prompt => String(prompt.description ?? ""),
    show: prompt => detail(prompt, read),
  }]);
}

/** @param {Json} prompt @param {(uri: string) => void} read */
function detail(prompt, read) {
  const name = String(prompt.name);
  const fields = Array.isArray(prompt.arguments) ? prompt.arguments : [];
  const inputs = completedInputs(fields, (argument, value, given) => ({ completePrompt: { name, argument, value, given } }));
  const result = outcome(answer => h("div", { class: "result" },
    typeof answer?.description === "string" && h("p", { class: "description" }, answer.description),
    ...(Array.isArray(answer?.messages) ? answer.messages : []).map((/** @type {Json} */ one) => message(one, read)), raw(answer)));
  const form = h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    void result.run({ getPrompt: { name, arguments: inputs.read() } });
  } }, fields.length ? inputs.element : h("p", { class: "empty" }, "No arguments."), h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Get")));
  return h("div", {}, heading(named(name, prompt.title), null, prompt.description), form, result.element, definition(prompt));
}
