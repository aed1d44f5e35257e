// @ts-check
// The panel of subscriptions: to changes of lists, and to updates of resources.

import { isConnected, on, post } from "./api.js";
import { describe } from "./content.js";
import { button, h } from "./dom.js";

/** @typedef {import("./dom.js").Json} Json */

/** @type {[string, string][]} */
const LISTS = [["toolsListChanged", "Tools"], ["promptsListChanged", "Prompts"], ["resourcesListChanged", "Resources"]];
const MAX_SHOWN = 50;

/**
 * Subscribes to changes.
 * @param {Json} filter As the protocol defines it.
 */
export async function subscribe(filter) {
  await post("subscribe", { id: crypto.randomUUID(), filter });
}

export function subscriptionsPanel() {
  const boxes = LISTS.map(([name, label]) => /** @type {const} */ ([name, h("input", { type: "checkbox" }), label]));
  const uris = h("textarea", { rows: 2, "aria-label": "URIs of resources, one a line", placeholder: "URIs of resources, one a line", spellcheck: "false" });
  const problem = h("p", { class: "problem", role: "alert", hidden: true });
  const list = h("ul", { class: "cards", "aria-label": "Subscriptions" });
  const empty = h("p", { class: "empty" }, "There are no subscriptions.");
  /** @type {Map<string, { update: (event: Json) => void, end: (error: Json) => void }>} */
  const open = new Map();

  const form = h("form", { submit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    const resourceSubscriptions = uris.value.split("\n").map(line => line.trim()).filter(uri => uri);
    const filter = Object.fromEntries(boxes.filter(([, box]) => box.checked).map(([name]) => [name, true]));
    problem.hidden = true;
    try {
      await subscribe(resourceSubscriptions.length ? { ...filter, resourceSubscriptions } : filter);
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
      problem.hidden = false;
    }
  } },
  h("fieldset", {}, h("legend", {}, "Changes of lists"), h("div", { class: "row" }, ...boxes.map(([, box, label]) => h("label", { class: "row" }, box, label)))),
  uris, h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Subscribe")), problem);

  /** @param {string} id @param {Json} filter */
  const show = (id, filter) => {
    if (open.has(id)) return;
    empty.hidden = true;
    const lists = LISTS.filter(([name]) => filter[name]).map(entry => `list of ${entry[1].toLowerCase()}`);
    const names = [...lists, ...(filter.resourceSubscriptions ?? [])];
    const updates = h("ol", { class: "updates" });
    const state = h("span", { class: "tag", role: "status" }, "open");
    const end = button("Unsubscribe", () => void post("unsubscribe", { id }), { class: "small" });
    const card = h("li", { class: "card" }, h("div", { class: "row" }, h("strong", {}, names.join(", ")), state, end), updates);
    list.prepend(card);
    let count = 0;
    open.set(id, {
      update: event => {
        count += 1;
        state.textContent = `${count} update${count === 1 ? "" : "s"}`;
        updates.prepend(h("li", {}, `${new Date().toLocaleTimeString()}: ${event.uri ?? `list of ${event.list}`}`));
        updates.children[MAX_SHOWN]?.remove();
      },
      end: error => {
        open.delete(id);
        state.textContent = "ended";
        end.replaceWith(button("Remove", () => card.remove(), { class: "small" }));
        if (error) card.append(describe(error));
      },
    });
  };
  on("snapshot", event => event.subscriptions.forEach((/** @type {Json} */ subscription) => show(subscription.id, subscription.filter)));
  on("subscribed", event => !event.isPast && show(event.id, event.filter));
  on("updated", event => !event.isPast && open.get(event.id)?.update(event));
  on("unsubscribed", event => {
    if (event.isPast) return;
    // A subscription that failed at once was never open.
    if (!open.has(event.id) && event.error) problem.replaceChildren(describe(event.error));
    if (!open.has(event.id)) problem.hidden = !event.error;
    open.get(event.id)?.end(event.error);
  });
  on("status", () => (form.inert = !isConnected()));
  return { element: h("div", {}, h("h2", {}, "Subscriptions"), form, empty, list), show: () => {} };
}
