// @ts-check
// Answers to sampling requests: the user writes what a model would.

import { message } from "./content.js";
import { button, h, newId } from "./dom.js";
import { FieldError, readJson } from "./fields.js";
import { tree, write } from "./json.js";

/** @typedef {import("./dom.js").Json} Json */

/**
 * @param {Json} params
 * @param {(answer: Json) => void} send
 */
export function samplingForm(params, send) {
  const text = h("textarea", { id: newId(), rows: 4 });
  const model = h("input", { id: newId(), type: "text", value: "by-hand", autocomplete: "off" });
  const reasons = ["endTurn", "maxTokens", "stopSequence", ...(params.tools ? ["toolUse"] : [])];
  const stop = h("select", { id: newId() }, ...reasons.map(reason => h("option", {}, reason)));
  const area = h("textarea", { class: "json", rows: 8, spellcheck: "false", "aria-label": "Result as JSON" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const fields = h("div", { class: "form-body" }, field("Text", text), field("Model", model), field("Stop reason", stop));
  const place = h("div", {}, fields);
  const written = () => ({ role: "assistant", content: { type: "text", text: text.value }, model: model.value, stopReason: stop.value });
  const isJson = () => toggle.getAttribute("aria-pressed") === "true";
  const toggle = button("Edit as JSON", () => {
    toggle.setAttribute("aria-pressed", String(!isJson()));
    if (isJson()) area.value = write(written());
    place.replaceChildren(isJson() ? area : fields);
  }, { "aria-pressed": "false", class: "small" });
  const submit = () => {
    problem.hidden = true;
    try {
      send({ result: isJson() ? readJson(area, "JSON") : written() });
    } catch (error) {
      if (!(error instanceof FieldError)) throw error;
      problem.textContent = error.message;
      problem.hidden = false;
    }
  };
  const messages = Array.isArray(params.messages) ? params.messages : [];
  const { messages: _, systemPrompt, tools, ...others } = params;
  return h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    submit();
  } },
  typeof systemPrompt === "string" && h("section", { "aria-label": "System prompt" }, h("h3", {}, "System prompt"), h("pre", { tabindex: "0" }, systemPrompt)),
  ...messages.map((/** @type {Json} */ entry) => message(entry)),
  tools && h("section", {}, h("h3", {}, "Tools"), tree(tools, 1)),
  Object.keys(others).length > 0 && h("section", {}, h("h3", {}, "Options"), tree(others, 1)),
  h("h3", {}, "Your answer in place of a model"), place, problem,
  h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Answer"), button("Decline", () => send({ refused: "The user declined the sampling request." })), toggle));
}

/** @param {string} name @param {HTMLElement} input */
function field(name, input) {
  return h("div", { class: "field" }, h("label", { for: input.id }, name), input);
}
