// @ts-check
// A panel with the entries of a list of the server on one side, and the chosen entry on the other.

import { call, isConnected, on } from "./api.js";
import { failure } from "./content.js";
import { button, fill, h } from "./dom.js";

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {{ list: string, label: string, capability: string, title: (item: Json) => string, subtitle?: (item: Json) => string, key: (item: Json) => string, show: (item: Json) => Node }} ListKind
 */

const MAX_SHOWN = 500;

/**
 * Returns a panel of one or two lists.
 * @param {string} name The name of the panel.
 * @param {string} changed The list whose changes the server announces.
 * @param {ListKind[]} kinds
 */
export function listPanel(name, changed, kinds) {
  const filter = h("input", { type: "search", placeholder: `Filter ${name.toLowerCase()}`, "aria-label": `Filter ${name.toLowerCase()}`, input: () => render() });
  const entries = h("div", { class: "entries" });
  const detail = h("section", { class: "detail", "aria-label": `Chosen of ${name}`, tabindex: "-1" });
  const note = h("p", { class: "hint", role: "status" });
  const reload = button("Reload", () => void load(), { class: "small" });
  const element = h("div", { class: "split" }, h("div", { class: "side" }, h("div", { class: "row" }, filter, reload), note, entries), detail);
  /** @type {Map<ListKind, Json[]>} */
  let lists = new Map();
  /** The entry that is shown, with its definition as JSON. @type {{ key: string, definition: string } | null} */
  let chosen = null;
  let loads = 0;
  let isLoaded = false;
  let isShown = false;

  const load = async () => {
    isLoaded = true;
    loads += 1;
    const own = loads;
    /** @type {Map<ListKind, Json[]>} */
    const loaded = new Map();
    note.textContent = "Loading …";
    for (const kind of kinds) {
      try {
        const items = await call({ list: kind.list });
        loaded.set(kind, Array.isArray(items) ? items : []);
      } catch (error) {
        if (own !== loads) return;
        // A server without the list says so in its capabilities or by an error.
        const isMissing = /** @type {Json} */ (error).details?.kind === "unsupported" || /** @type {Json} */ (error).details?.code === -32601;
        if (isMissing) continue;
        fill(entries, failure(error));
        note.textContent = "";
        return;
      }
      if (own !== loads) return;
    }
    lists = loaded;
    note.textContent = [...loaded.values()].some(items => items.length) ? "" : `The server has no ${name.toLowerCase()}.`;
    render();
    refresh();
  };

  // A form that is being filled in stays, unless the server has changed or removed its entry.
  const refresh = () => {
    if (!chosen) return;
    const { key, definition } = chosen;
    for (const [kind, items] of lists) {
      const item = items.find(candidate => keyOf(kind, candidate) === key);
      if (item && JSON.stringify(item) !== definition) show(kind, item);
      if (item) return;
    }
    chosen = null;
    empty();
  };

  /** @param {ListKind} kind @param {Json} item */
  const keyOf = (kind, item) => `${kind.list} ${kind.key(item)}`;

  /** @param {ListKind} kind @param {Json} item */
  const show = (kind, item) => {
    chosen = { key: keyOf(kind, item), definition: JSON.stringify(item) };
    fill(detail, kind.show(item));
  };

  const render = () => {
    const wanted = filter.value.toLowerCase();
    fill(entries, ...kinds.flatMap(kind => {
      const items = lists.get(kind) ?? [];
      const found = items.filter(item =>
        !wanted || JSON.stringify([kind.key(item), kind.title(item), item.description]).toLowerCase().includes(wanted));
      const heading = h("h3", {}, `${kind.label} `, h("span", { class: "count" }, found.length === items.length ? items.length : `${found.length} of ${items.length}`));
      if (!lists.has(kind)) return [];
      return [heading, h("ul", {}, ...found.slice(0, MAX_SHOWN).map(item => entry(kind, item))),
        found.length > MAX_SHOWN && h("p", { class: "hint" }, `${found.length - MAX_SHOWN} more: use the filter`)];
    }));
  };

  /** @param {ListKind} kind @param {Json} item */
  const entry = (kind, item) => {
    const choose = h("button", { type: "button", class: "choose", "aria-current": keyOf(kind, item) === chosen?.key ? "true" : null, click: () => {
      entries.querySelectorAll("[aria-current]").forEach(current => current.removeAttribute("aria-current"));
      choose.setAttribute("aria-current", "true");
      show(kind, item);
      // On a narrow screen the detail is below the list.
      if (detail.getBoundingClientRect().top > innerHeight - 80) detail.scrollIntoView();
    } }, h("span", { class: "name" }, kind.title(item)), h("span", { class: "sub" }, kind.subtitle?.(item) ?? ""));
    return h("li", {}, choose);
  };

  const empty = () => fill(detail, h("p", { class: "empty" }, isConnected() ? "Choose an entry." : "The server is not connected."));
  on("status", event => {
    if (event.isPast) return;
    lists = new Map();
    loads += 1;
    isLoaded = false;
    note.textContent = "";
    render();
    if (!isConnected()) chosen = null;
    if (!chosen) empty();
    if (isShown && isConnected()) void load();
  });
  on("changed", event => {
    if (!event.isPast && event.list === changed && isLoaded && isConnected()) void load();
  });
  empty();
  const setShown = (/** @type {boolean} */ visible) => {
    isShown = visible;
    if (visible && !isLoaded && isConnected()) void load();
  };
  return { element, show: setShown, detail };
}

/**
 * Returns the heading of an entry, with its badges and description.
 * @param {string} title
 * @param {string | null} uri
 * @param {Json} description
 * @param {...string} badges
 */
export function heading(title, uri, description, ...badges) {
  return h("div", {},
    h("h2", {}, title), uri !== null && uri !== title && h("p", {}, h("code", {}, uri)),
    badges.length > 0 && h("p", { class: "tags" }, ...badges.map(badge => h("span", { class: "tag" }, badge))),
    typeof description === "string" && h("p", { class: "description" }, description));
}

/**
 * Returns a place for the outcome of calls, with their progress and a button that cancels them.
 * @param {(result: Json, repeated?: string) => Node} show Gets the name of the result's member that another one repeats.
 */
export function outcome(show) {
  const element = h("section", { class: "outcome", "aria-label": "Result", "aria-live": "polite" });
  /** @param {Json} operation @returns {Promise<void>} */
  const run = async operation => {
    const start = performance.now();
    const bar = h("progress", { "aria-label": "Progress" });
    const text = h("span", { class: "hint" });
    const row = h("div", { class: "row running" }, bar, text);
    fill(element, row);
    const time = () => h("p", { class: "hint" }, `${(performance.now() - start).toFixed(0)} ms`);
    try {
      /** @type {string | undefined} */
      let repeated;
      const result = await call(operation, {
        onDone: event => (repeated = event.repeated),
        onProgress: event => {
          if (Number(event.total) > 0) {
            bar.max = Number(event.total);
            bar.value = Number(event.progress);
          }
          const count = event.total === null ? String(event.progress) : `${event.progress} of ${event.total}`;
          text.textContent = [count, event.message].filter(part => part).join(": ");
        },
        onStart: cancel => row.append(button("Cancel", cancel, { class: "small" })),
      });
      fill(element, time(), show(result, repeated));
    } catch (error) {
      fill(element, time(), failure(error));
    }
  };
  return { element, run };
}
