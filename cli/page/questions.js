// @ts-check
// The server's questions, which are answered above the panels while a call waits.

import { on, post } from "./api.js";
import { failure } from "./content.js";
import { add, button, h, webUrl } from "./dom.js";
import { schemaForm } from "./form.js";
import { tree } from "./json.js";
import { samplingForm } from "./sampling.js";

/** @typedef {import("./dom.js").Json} Json */

/** @param {HTMLElement} place */
export function showQuestions(place) {
  /** @type {Map<number, HTMLElement>} */
  const cards = new Map();
  /** @param {Json} question */
  const show = question => {
    if (cards.has(question.id)) return;
    const card = questionCard(question);
    cards.set(question.id, card);
    place.append(card);
    // The user may have scrolled down in a panel.
    card.scrollIntoView({ block: "nearest" });
  };
  on("snapshot", event => {
    for (const card of cards.values()) card.remove();
    cards.clear();
    event.questions.forEach(show);
  });
  on("question", event => !event.isPast && show(event.question));
  on("questionClosed", event => {
    cards.get(event.id)?.remove();
    cards.delete(event.id);
  });
  on("signIn", event => !event.isPast && place.append(signIn(event.url)));
}

/** @param {Json} question */
function questionCard(question) {
  const { id, method, params } = question;
  const problem = h("div");
  /** @param {Json} answer */
  const send = async answer => {
    try {
      await post("answer", { question: id, answer });
    } catch (error) {
      problem.replaceChildren(failure(error));
    }
  };
  const body = method === "sampling/createMessage"
    ? samplingForm(params, send)
    : params.mode === "url" || params.url !== undefined ? urlForm(params, send) : elicitation(params, send);
  const titles = { "sampling/createMessage": "The server asks for a completion by a model", "elicitation/create": "The server asks a question" };
  const title = titles[/** @type {keyof typeof titles} */ (method)] ?? `The server asks: ${method}`;
  const details = h("details", { class: "raw" }, h("summary", {}, "JSON"), tree(params, 3));
  return h("article", { class: "question", "aria-label": title }, h("h2", {}, title), body, problem, details);
}

/** @param {Json} params @param {(answer: Json) => void} send */
function elicitation(params, send) {
  const form = schemaForm(params.requestedSchema ?? { type: "object" });
  const submit = () => {
    const read = form.read();
    if (read) send({ result: { action: "accept", content: read.value } });
  };
  return h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    submit();
  } }, h("p", { class: "description" }, String(params.message ?? "")), form.element,
  h("div", { class: "row" }, h("button", { type: "submit", class: "primary" }, "Accept"), ...refusals(send), form.toggle));
}

/** @param {Json} params @param {(answer: Json) => void} send */
function urlForm(params, send) {
  const url = webUrl(String(params.url));
  const shown = h("p", {}, "URL: ", h("code", {}, String(params.url)));
  const host = url ? h("p", {}, "It leads to ", h("strong", {}, url.host), url.protocol === "http:" ? ", without encryption." : ".") : h("p", { class: "problem" }, "This is no URL of a web page, so it can't be opened here.");
  const open = url && h("a", { class: "button", href: url.href, target: "_blank", rel: "noopener noreferrer" }, "Open the page");
  return h("div", {}, h("p", { class: "description" }, String(params.message ?? "")), shown, host,
    h("div", { class: "row" }, open, button("Accept", () => send({ result: { action: "accept" } }), { class: "primary" }), ...refusals(send)));
}

/** @param {(answer: Json) => void} send */
function refusals(send) {
  return [button("Decline", () => send({ result: { action: "decline" } })), button("Cancel", () => send({ result: { action: "cancel" } }))];
}

/** @param {string} url */
function signIn(url) {
  const target = webUrl(url);
  const card = h("article", { class: "question", "aria-label": "Sign in" }, h("h2", {}, "The server asks you to sign in"),
    h("p", {}, "The authorization server is ", h("strong", {}, target?.host ?? url), "."));
  const open = target && h("a", { class: "button primary", href: target.href, target: "_blank", rel: "noopener noreferrer" }, "Open the page of the sign-in");
  add(card, h("div", { class: "row" }, open, button("Close", () => card.remove())));
  on("status", event => !event.isPast && event.state !== "connecting" && card.remove());
  return card;
}
