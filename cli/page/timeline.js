// @ts-check
// The timeline: every message of the connection in both directions.

import { on, post } from "./api.js";
import { button, fill, h } from "./dom.js";
import { frameRow } from "./frame.js";

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {import("./frame.js").Frame} Frame
 */

/** Older messages are in the transcript only. */
const MAX_FRAMES = 5000;
const MAX_SHOWN = 300;
const SEARCH_PAUSE = 250;

/** @param {HTMLElement} place */
export function showTimeline(place) {
  /** @type {Frame[]} */
  let frames = [];
  /** Requests without a response, by sender and id. @type {Map<string, Frame>} */
  const requests = new Map();
  /** The messages that contain the searched text; null for all. @type {Set<number> | null} */
  let found = null;
  let limit = MAX_SHOWN;
  let cleared = 0;
  let timer = 0;
  let isScheduled = false;

  const list = h("div", { class: "frames", role: "log", "aria-label": "Messages", "aria-live": "off", tabindex: "0" });
  const count = h("span", { class: "count", role: "status" });
  const search = h("input", { type: "search", "aria-label": "Search messages", placeholder: "Search", input: () => searchSoon() });
  const select = (/** @type {string} */ label, /** @type {[string, string][]} */ options) => h("select", { "aria-label": label, change: () => render() }, ...options.map(([value, text]) => h("option", { value }, text)));
  const sender = select("Direction", [["", "Both directions"], ["client", "→ To the server"], ["server", "← From the server"]]);
  const kind = select("Kind", [["", "All kinds"], ["request", "Requests"], ["result", "Results"], ["error", "Errors"], ["notification", "Notifications"], ["other", "Invalid, batches"]]);
  const clear = button("Clear", () => {
    cleared = frames.at(-1)?.number ?? cleared;
    frames = [];
    render();
  }, { class: "small" });
  const transcript = h("a", { class: "button small", href: "api/transcript", download: "transcript.jsonl" }, "Export");

  /** @param {Frame} frame */
  const isWanted = frame => {
    const { summary } = frame;
    if (sender.value && frame.from !== sender.value) return false;
    if (kind.value === "other" && !["invalid", "batch"].includes(summary.kind)) return false;
    if (kind.value && kind.value !== "other" && summary.kind !== kind.value) return false;
    return !found || found.has(frame.number);
  };
  const render = () => {
    const wanted = frames.filter(isWanted);
    const shown = wanted.slice(-limit);
    const isAtEnd = list.scrollTop + list.clientHeight >= list.scrollHeight - 30;
    const rows = shown.map(frame => (frame.element ??= frameRow(frame)));
    const older = wanted.length - shown.length;
    // Rows that stay are not touched, so that what is open, and the focus, stay.
    const kept = new Set(rows);
    for (const child of [...list.children]) if (!kept.has(/** @type {HTMLElement} */ (child))) child.remove();
    rows.forEach((row, index) => {
      if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
    });
    if (older) list.prepend(button(`Show ${Math.min(older, MAX_SHOWN)} older`, () => {
      limit += MAX_SHOWN;
      render();
    }, { class: "small" }));
    if (!frames.length) fill(list, h("p", { class: "empty" }, "No messages yet."));
    count.textContent = wanted.length === frames.length ? `${frames.length}` : `${wanted.length} of ${frames.length}`;
    if (isAtEnd) list.scrollTop = list.scrollHeight;
  };
  const renderSoon = () => {
    if (isScheduled) return;
    isScheduled = true;
    // Hidden pages draw no frames, so this is a timer.
    setTimeout(() => {
      isScheduled = false;
      render();
    }, 30);
  };
  const searchSoon = () => {
    clearTimeout(timer);
    timer = setTimeout(() => void find(), SEARCH_PAUSE);
  };
  const find = async () => {
    const text = search.value;
    try {
      const numbers = text ? await post("search", text) : null;
      // The text may have changed meanwhile.
      if (text !== search.value) return;
      found = numbers && new Set(numbers);
      render();
    } catch (error) {
      count.textContent = /** @type {Error} */ (error).message;
    }
  };
  on("message", event => {
    if (event.number <= cleared || (frames.at(-1)?.number ?? 0) >= event.number) return;
    /** @type {Frame} */
    const frame = { ...event, pair: null, element: null };
    const { summary, from } = frame;
    if (summary.kind === "request") {
      requests.set(`${from} ${summary.id}`, frame);
    } else if (summary.kind === "result" || summary.kind === "error") {
      const key = `${from === "client" ? "server" : "client"} ${summary.id}`;
      frame.pair = requests.get(key) ?? null;
      requests.delete(key);
    }
    frames.push(frame);
    if (frames.length > MAX_FRAMES) frames.splice(0, frames.length - MAX_FRAMES);
    if (requests.size > MAX_FRAMES) requests.clear();
    if (search.value) searchSoon();
    renderSoon();
  });
  // Ids begin again with each connection.
  on("status", event => event.state === "connecting" && !event.isPast && requests.clear());
  fill(place, h("div", { class: "bar" }, h("h2", {}, "Timeline ", count), search, sender, kind, clear, transcript), list);
  render();
}
