// @ts-check
// One message of the timeline.

import { body } from "./api.js";
import { failure } from "./content.js";
import { button, copyButton, fill, formatSize, h } from "./dom.js";
import { parse, tree } from "./json.js";

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {{ number: number, time: number, from: "client" | "server", size: number, summary: Json, text?: string, preview?: string, pair: Frame | null, element: HTMLElement | null }} Frame
 */

/** Longer messages are not made a tree, and shown in part. */
const MAX_TREE = 1024 * 1024;
const MAX_TEXT = 256 * 1024;

/**
 * Returns the element of a message.
 * @param {Frame} frame
 * @returns {HTMLElement}
 */
export function frameRow(frame) {
  const { summary } = frame;
  const isSent = frame.from === "client";
  const request = summary.method ? null : frame.pair;
  const name = summary.method ?? (request ? request.summary.method : summary.kind);
  const kind = summary.kind === "result" || summary.kind === "error" ? summary.kind : summary.kind === "request" ? "" : summary.kind;
  const subject = summary.subject ?? request?.summary.subject ?? "";
  const row = h("details", { class: `frame ${summary.kind}`, "data-number": frame.number },
    h("summary", {},
      h("span", { class: isSent ? "arrow sent" : "arrow", title: isSent ? "to the server" : "from the server" }, isSent ? "→" : "←", h("span", { class: "hidden" }, isSent ? " to the server" : " from the server")),
      h("span", { class: "method" }, name), kind && h("span", { class: `tag ${kind}` }, kind),
      h("span", { class: "subject" }, subject),
      h("span", { class: "numbers" }, request && duration(frame.time - request.time), request && " · ", formatSize(frame.size), " · ", `${(frame.time / 1000).toFixed(3)} s`)));
  row.addEventListener("toggle", () => {
    if (row.open && row.childElementCount === 1) row.append(content(frame));
  });
  return row;
}

/** @param {number} time */
function duration(time) {
  return time < 1000 ? `${time.toFixed(1)} ms` : `${(time / 1000).toFixed(2)} s`;
}

/** @param {Frame} frame */
function content(frame) {
  const place = h("div");
  const fetchText = async () => frame.text ?? (await body(frame.number));
  const download = button("Download", async () => {
    try {
      const url = URL.createObjectURL(new Blob([await fetchText()], { type: "application/octet-stream" }));
      h("a", { href: url, download: `message-${frame.number}.json` }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60_000);
    } catch (error) {
      fill(place, failure(error));
    }
  });
  if (frame.text !== undefined) {
    showText(place, frame.text);
  } else {
    const load = button(`Load all ${formatSize(frame.size)}`, async () => {
      load.disabled = true;
      try {
        showText(place, await fetchText());
      } catch (error) {
        fill(place, failure(error));
      }
    });
    fill(place, h("pre", { tabindex: "0" }, `${frame.preview ?? ""} …`), load);
  }
  const id = frame.summary.id === undefined ? "" : `id ${frame.summary.id} · `;
  return h("div", { class: "content" }, place, h("div", { class: "row" }, copyButton(fetchText), download, h("span", { class: "hint" }, `${id}number ${frame.number}`)));
}

/** @param {HTMLElement} place @param {string} text */
function showText(place, text) {
  if (text.length <= MAX_TREE) {
    try {
      fill(place, tree(parse(text), 3));
      return;
    } catch {
      // It is not JSON, which is shown as it is.
    }
  }
  const isCut = text.length > MAX_TEXT;
  fill(place, h("pre", { tabindex: "0" }, isCut ? `${text.slice(0, MAX_TEXT)} …` : text), isCut && h("p", { class: "hint" }, `The first ${formatSize(MAX_TEXT)} of ${formatSize(text.length)} are shown; copy or download it for the rest.`));
}
