// @ts-check
// The panel of notifications: log messages and everything else that the server sends unasked.

import { call, capabilities, isConnected, on } from "./api.js";
import { button, h } from "./dom.js";
import { tree, write } from "./json.js";

/** @typedef {import("./dom.js").Json} Json */

const LEVELS = ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];
const MAX_ROWS = 1000;

export function notificationsPanel() {
  const list = h("div", { class: "log", "aria-label": "Notifications", role: "log" });
  const empty = h("p", { class: "empty" }, "The server has sent no notifications.");
  const problem = h("span", { class: "hint", role: "status" });
  const search = h("input", { type: "search", "aria-label": "Search notifications", placeholder: "Search", input: () => filter() });
  const level = h("select", { change: async () => {
    problem.textContent = "";
    try {
      await call({ setLogLevel: level.value });
      problem.textContent = `The server sends ${level.value} and above.`;
    } catch (error) {
      problem.textContent = /** @type {Error} */ (error).message;
    }
  } }, h("option", { value: "", disabled: true, selected: true }, "as the server likes"),
  ...LEVELS.map(name => h("option", { value: name }, name)));
  const label = h("label", { class: "row" }, "Log level", level);
  const clear = button("Clear", () => {
    list.replaceChildren();
    empty.hidden = false;
  }, { class: "small" });

  const filter = () => {
    const wanted = search.value.toLowerCase();
    for (const row of /** @type {Iterable<HTMLElement>} */ (/** @type {unknown} */ (list.children))) row.hidden = wanted !== "" && !(row.dataset.text ?? "").includes(wanted);
  };
  /** @param {Json} event @param {string} kind @param {string} source @param {Json} data */
  const addRow = (event, kind, source, data) => {
    empty.hidden = true;
    const isPlain = typeof data === "string";
    const row = h("div", { class: `level-${kind}`, "data-text": `${kind} ${source} ${isPlain ? data : write(data)}`.toLowerCase().slice(0, 10_000) },
      h("span", { class: "time" }, `${(event.time / 1000).toFixed(3)} s`), h("span", { class: "tag" }, kind), source && h("code", {}, source), isPlain ? h("span", { class: "text" }, data) : tree(data, 1));
    row.hidden = search.value !== "" && !(row.dataset.text ?? "").includes(search.value.toLowerCase());
    list.append(row);
    if (list.childElementCount > MAX_ROWS) list.firstElementChild?.remove();
  };
  on("log", event => addRow(event, LEVELS.includes(event.level) ? event.level : "log", event.logger ?? "", event.data));
  on("changed", event => addRow(event, "changed", "", `The list of ${event.list} changed.`));
  on("notified", event => addRow(event, "notification", String(event.method), event.params));
  on("urlDone", event => addRow(event, "done", "", `The page of the question ${event.id} is finished.`));
  on("reconnected", event => addRow(event, "connection", "", `Connected again: ${event.reason}`));
  on("missing", event => addRow({ time: 0 }, "missing", "", `${event.count} earlier events were dropped.`));
  on("status", () => {
    level.disabled = !isConnected() || !capabilities().logging;
    label.title = level.disabled ? "The server does not declare log messages." : "";
  });
  const element = h("div", {}, h("h2", {}, "Notifications"), h("div", { class: "row" }, label, search, clear, problem), empty, list);
  return { element, show: () => {} };
}
