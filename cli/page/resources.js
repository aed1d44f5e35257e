// @ts-check
// The panel of resources and resource templates.

import { capabilities } from "./api.js";
import { raw, resourceContent } from "./content.js";
import { completedInputs } from "./completion.js";
import { button, fill, formatSize, h, named } from "./dom.js";
import { heading, listPanel, outcome } from "./lists.js";
import { subscribe } from "./subscriptions.js";
import { definition } from "./tools.js";

/** @typedef {import("./dom.js").Json} Json */

export function resourcesPanel() {
  const panel = listPanel("Resources", "resources", [{
    list: "resources",
    label: "Resources",
    capability: "resources",
    key: item => String(item.uri),
    title,
    subtitle: item => String(item.uri),
    show: resource,
  }, {
    list: "resourceTemplates",
    label: "Templates",
    capability: "resources",
    key: item => String(item.uriTemplate),
    title,
    subtitle: item => String(item.uriTemplate),
    show: template,
  }]);
  /** @param {string} uri */
  const read = uri => {
    const [element, run] = reader(uri);
    fill(panel.detail, h("div", {}, heading(uri, uri, null), element));
    run();
  };
  const uri = h("input", { type: "text", "aria-label": "URI", placeholder: "URI of any resource", spellcheck: "false", autocomplete: "off" });
  const any = h("form", { class: "row", submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    if (uri.value) read(uri.value);
  } }, uri, h("button", { type: "submit", class: "small" }, "Read"));
  panel.element.querySelector(".side")?.append(any);
  return { ...panel, read };
}

/** @param {Json} item */
function title(item) {
  return named(item.name, item.title) || String(item.uri ?? item.uriTemplate);
}

/** @param {Json} item */
function resource(item) {
  const uri = String(item.uri);
  const badges = [item.mimeType, typeof item.size === "number" && formatSize(item.size)].filter(badge => badge).map(String);
  const [element] = reader(uri);
  return h("div", {}, heading(title(item), uri, item.description, ...badges), element, definition(item));
}

/**
 * @param {string} uri
 * @returns {[HTMLElement, () => void]}
 */
function reader(uri) {
  const result = outcome(contents);
  const run = () => void result.run({ readResource: { uri } });
  const element = h("div", {}, h("div", { class: "row" }, button("Read", run, { class: "primary" }), subscribeButton(uri)), result.element);
  return [element, run];
}

/** @param {string} uri */
function subscribeButton(uri) {
  // From 2026-07-28 on, a subscription is a request of its own.
  if (!capabilities().resources?.subscribe) return null;
  const note = h("span", { class: "hint", role: "status" });
  return h("span", { class: "row" }, button("Subscribe", async () => {
    try {
      await subscribe({ resourceSubscriptions: [uri] });
      note.textContent = "Subscribed; see Subscriptions";
    } catch (error) {
      note.textContent = /** @type {Error} */ (error).message;
    }
  }), note);
}

/** @param {Json} item */
function template(item) {
  const uri = String(item.uriTemplate);
  const names = variables(uri);
  const inputs = completedInputs(names.map(name => ({ name })), (argument, value, given) => ({ completeResource: { uri, argument, value, given } }));
  const result = outcome(contents);
  const form = h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    void result.run({ readResource: { uri, variables: inputs.read() } });
  } }, inputs.element, h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Read")));
  const badges = item.mimeType ? [String(item.mimeType)] : [];
  return h("div", {}, heading(title(item), uri, item.description, ...badges), form, result.element, definition(item));
}

/**
 * Returns the variables of a URI template (RFC 6570).
 * @param {string} template
 * @returns {string[]}
 */
function variables(template) {
  const found = [...template.matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap(match => (match[1] ?? "").split(","));
  return [...new Set(found.map(variable => variable.replace(/(\*|:\d+)$/, "").trim()).filter(variable => variable))];
}

/** @param {Json} result */
function contents(result) {
  const list = Array.isArray(result?.contents) ? result.contents : [];
  return h("div", { class: "result" }, ...list.map(resourceContent), !list.length && h("p", { class: "empty" }, "The resource is empty."), raw(result));
}
