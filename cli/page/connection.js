// @ts-check
// The panel of the connection: its target, credentials and roots, and what the server says of itself.

import { call, isConnected, on, post, state } from "./api.js";
import { describe, failure, raw } from "./content.js";
import { add, button, fill, h, named, newId } from "./dom.js";
import { parse, tree } from "./json.js";
import { outcome } from "./lists.js";
import { markdown } from "./markdown.js";
import { rowEditor } from "./rows.js";

/** @typedef {import("./dom.js").Json} Json */

const REVISIONS = ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const AUTH = { none: "None, or in the headers", token: "Token", oAuth: "Sign in (OAuth)", clientCredentials: "Client credentials" };
const ANSWERS = { elicitation: "Questions (elicitation)", sampling: "Sampling", roots: "Roots" };
const URLS = "http://127.0.0.1:8000/mcp";

export function connectionPanel() {
  const form = h("div");
  const server = h("section", { "aria-label": "Server" });
  const steps = h("ol", { class: "steps" });
  const stepsBox = h("details", { hidden: true, open: true }, h("summary", {}, "Steps of the sign-in"), steps);
  let isShown = false;
  on("snapshot", event => {
    if (!isShown) fill(form, settingsForm(event.settings));
    isShown = true;
  });
  on("status", () => showServer(server));
  on("signInStep", event => {
    stepsBox.hidden = false;
    steps.append(h("li", {}, h("span", { class: "time" }, `${(event.time / 1000).toFixed(3)} s `), String(event.text)));
  });
  on("signIn", event => {
    stepsBox.hidden = false;
    steps.append(h("li", {}, "the user is asked to sign in at ", h("code", {}, String(event.url).split("?")[0])));
  });
  return { element: h("div", { class: "columns" }, h("section", { "aria-label": "Settings" }, form, stepsBox), server), show: () => {} };
}

/** @param {Json} settings */
function settingsForm(settings) {
  const url = h("input", { type: "text", value: settings.url, placeholder: URLS, spellcheck: "false", autocomplete: "off", inputmode: "url" });
  const command = h("textarea", { rows: 3, spellcheck: "false", autocomplete: "off", value: settings.command.join("\n") });
  const folder = h("input", { type: "text", value: settings.folder, spellcheck: "false", autocomplete: "off" });
  const environment = rowEditor("Environment variables", { name: "Name", value: "Value", secret: true }, settings.environment);
  const headers = rowEditor("Headers", { name: "Name", value: "Value", secret: true }, settings.headers);
  const auth = authForm(settings.auth);
  const parts = {
    start: [h("p", {}, "As on the command line: ", h("code", {}, settings.start))],
    url: [field("URL", url, "http, https, ws, wss, tcp or unix"), headers.element, auth.element],
    command: [field("Program and arguments", command, "one a line"), field("Working directory", folder, "empty for that of the inspector"), environment.element],
  };
  const place = h("div");
  const kinds = /** @type {[keyof typeof parts, string][]} */ ([["start", "Target of the command line"], ["url", "URL (HTTP, WebSocket, TCP, Unix socket)"], ["command", "Command (stdio)"]]);
  const transport = h("select", { change: () => showPart() }, ...kinds.filter(([kind]) => kind !== "start" || state.hasStart && settings.transport === "start").map(([kind, label]) => h("option", { value: kind, selected: kind === settings.transport }, label)));
  const showPart = () => fill(place, ...parts[/** @type {keyof typeof parts} */ (transport.value)]);
  showPart();
  const revision = h("select", {}, h("option", { value: "" }, "Newest that both speak"),
    ...REVISIONS.map(name => h("option", { value: name, selected: name === settings.revision }, name)));
  const timeout = h("input", { type: "number", min: "0.1", step: "any", value: settings.timeout });
  const answers = Object.entries(ANSWERS).map(([name, label]) => /** @type {const} */ ([name, label, h("input", { type: "checkbox", checked: settings.answers[name] })]));
  const rootRows = (settings.roots ?? []).map((/** @type {Json} */ root) => ({ name: root.uri, value: root.name ?? "" }));
  const roots = rowEditor("Roots", { name: "file:// URI", value: "Name" }, rootRows);
  const readRoots = () => roots.read().map(({ name, value }) => (value ? { uri: name, name: value } : { uri: name }));
  const note = h("div", { role: "status" });
  const tell = async (/** @type {() => Promise<string>} */ action) => {
    try {
      fill(note, await action());
    } catch (error) {
      fill(note, failure(error));
    }
  };
  const connect = () => tell(async () => {
    await post("connect", {
      ...settings, transport: transport.value, url: url.value.trim(),
      command: command.value.split("\n").filter(line => line), folder: folder.value,
      environment: environment.read(), headers: headers.read(), revision: revision.value, timeout: Number(timeout.value), auth: auth.read(),
      answers: Object.fromEntries(answers.map(([name, , box]) => [name, box.checked])), roots: readRoots(),
    });
    return "";
  });
  const sendRoots = button("Set the roots now", () => void tell(async () => {
    await post("roots", readRoots());
    return "The server gets these roots.";
  }), { class: "small" });
  return h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    void connect();
  } },
  h("h2", {}, "Connection"), field("Transport", transport), place, field("Revision", revision), field("Timeout", timeout, "seconds"),
  h("fieldset", {}, h("legend", {}, "Declare to the server"), ...answers.map(([, label, box]) => h("label", { class: "row" }, box, label))),
  roots.element, sendRoots,
  h("div", { class: "row actions" }, h("button", { type: "submit", class: "primary" }, "Connect"), button("Disconnect", () => void tell(async () => {
    await post("disconnect", {});
    return "";
  }))), note);
}

/** @param {Json} settings */
function authForm(settings) {
  const keeps = "unchanged, or none";
  const secret = () => h("input", { type: "password", autocomplete: "off", placeholder: keeps });
  const [token, clientSecret] = [secret(), secret()];
  const clientId = h("input", { type: "text", value: settings.clientId, autocomplete: "off", placeholder: "none: the client registers itself" });
  const scopes = h("input", { type: "text", value: settings.scopes, autocomplete: "off", placeholder: "those that the server asks for" });
  const client = [field("Client id", clientId), field("Client secret", clientSecret), field("Scopes", scopes, "separated by spaces")];
  /** @type {Record<string, HTMLElement[]>} */
  const parts = { none: [], token: [field("Access token", token)], oAuth: client, clientCredentials: client };
  const place = h("div");
  const kind = h("select", { change: () => fill(place, ...(parts[kind.value] ?? [])) }, ...Object.entries(AUTH).map(([name, label]) => h("option", { value: name, selected: name === settings.kind }, label)));
  fill(place, ...(parts[kind.value] ?? []));
  const read = () => ({ kind: kind.value, token: token.value || null, clientId: clientId.value.trim(), clientSecret: clientSecret.value || null, scopes: scopes.value });
  return { element: h("fieldset", {}, h("legend", {}, "Authorization"), field("Credentials", kind), place), read };
}

/** @param {string} name @param {HTMLElement} input @param {string} [hint] */
function field(name, input, hint) {
  input.id = newId();
  return h("div", { class: "field" }, h("label", { for: input.id }, name, hint && h("span", { class: "type" }, ` ${hint}`)), input);
}

/** @param {HTMLElement} place */
function showServer(place) {
  const { status } = state;
  if (!isConnected()) {
    fill(place, h("h2", {}, "Server"), status.error ? describe(status.error) : h("p", { class: "empty" }, status.state === "connecting" ? "Connecting …" : "Not connected."));
    return;
  }
  const { info, revision, capabilities, instructions, sessionId } = status.server;
  /** @param {string} name @param {Json} value */
  const row = (name, value) => value && h("div", {}, h("dt", {}, name), h("dd", {}, String(value)));
  const time = h("span", { class: "hint", role: "status" });
  const ping = button("Ping", async () => {
    const start = performance.now();
    try {
      await call("ping");
      time.textContent = `${(performance.now() - start).toFixed(1)} ms`;
    } catch (error) {
      time.textContent = /** @type {Error} */ (error).message;
    }
  });
  fill(place, h("h2", {}, "Server"),
    h("dl", {}, row("Name", named(info.name, info.title)), row("Version", info.version), row("Revision", revision), row("Website", info.websiteUrl), row("Session", sessionId)),
    h("div", { class: "row" }, ping, time));
  if (instructions) add(place, h("h3", {}, "Instructions"), markdown(String(instructions)));
  add(place, h("h3", {}, "Capabilities"), tree(capabilities, 2), anyRequest());
}

function anyRequest() {
  const method = h("input", { type: "text", "aria-label": "Method", placeholder: "Method, such as tools/list", spellcheck: "false", autocomplete: "off" });
  const params = h("textarea", { class: "json", rows: 3, "aria-label": "Params as JSON", placeholder: "Params as JSON", spellcheck: "false" });
  const result = outcome(raw);
  const form = h("form", { submit: (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      void result.run({ request: { method: method.value, params: params.value.trim() ? parse(params.value) : null } });
    } catch (error) {
      fill(result.element, failure(error));
    }
  } }, method, params, h("div", { class: "row" }, h("button", { type: "submit" }, "Send")), result.element);
  return h("details", { class: "raw" }, h("summary", {}, "Send any request"), form);
}
