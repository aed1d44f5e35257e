// @ts-check
// The page: its panels, the state of the connection, and the theme.

import { follow, on, state } from "./api.js";
import { connectionPanel } from "./connection.js";
import { h, named } from "./dom.js";
import { notificationsPanel } from "./notifications.js";
import { promptsPanel } from "./prompts.js";
import { showQuestions } from "./questions.js";
import { resourcesPanel } from "./resources.js";
import { subscriptionsPanel } from "./subscriptions.js";
import { showTimeline } from "./timeline.js";
import { toolsPanel } from "./tools.js";

/** @typedef {{ element: HTMLElement, show: (visible: boolean) => void }} Panel */

/** @param {string} id */
function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`the page has no element ${id}`);
  return element;
}

function tabs() {
  const resources = resourcesPanel();
  const read = (/** @type {string} */ uri) => {
    choose("Resources", false);
    resources.read(uri);
  };
  /** @type {Record<string, Panel>} */
  const panels = {
    Connection: connectionPanel(),
    Tools: toolsPanel(read),
    Resources: resources,
    Prompts: promptsPanel(read),
    Subscriptions: subscriptionsPanel(),
    Notifications: notificationsPanel(),
  };
  const names = Object.keys(panels);
  const bar = byId("tabs");
  const entries = new Map(names.map(name => {
    const panel = h("div", { role: "tabpanel", id: `panel-${name}`, "aria-labelledby": `tab-${name}`, hidden: true }, panels[name]?.element);
    const tab = h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": panel.id, click: () => choose(name, false) }, name);
    bar.append(tab);
    byId("panels").append(panel);
    return [name, { panel, tab }];
  }));
  /** @param {string} chosen @param {boolean} takesFocus */
  const choose = (chosen, takesFocus) => {
    for (const [name, { panel, tab }] of entries) {
      const isChosen = name === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      panel.hidden = !isChosen;
      panels[name]?.show(isChosen);
      if (isChosen && takesFocus) tab.focus();
    }
    // Without the token, which is spent.
    history.replaceState(null, "", `${location.pathname}#${chosen.toLowerCase()}`);
  };
  bar.addEventListener("keydown", event => {
    const at = names.findIndex(name => entries.get(name)?.tab === document.activeElement);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: names.length - 1 }[event.key];
    const name = next === undefined ? undefined : names.at(next % names.length);
    if (at < 0 || name === undefined) return;
    event.preventDefault();
    choose(name, true);
  });
  const wanted = names.find(name => `#${name.toLowerCase()}` === location.hash);
  choose(wanted ?? "Connection", false);
  let hasChosen = wanted !== undefined;
  bar.addEventListener("click", () => (hasChosen = true));
  return () => {
    // After the first connection the tools are what users want to see.
    if (!hasChosen) choose("Tools", false);
    hasChosen = true;
  };
}

/** @param {() => void} onConnected */
function showStatus(onConnected) {
  const place = byId("status");
  const words = { connecting: "Connecting …", disconnected: "Not connected", failed: "Connection failed" };
  const show = () => {
    const { status } = state;
    const name = named(status.server?.info.name, status.server?.info.title);
    const isConnected = status.state === "connected";
    place.textContent = isConnected ? `Connected to ${name || "a server"} (${status.server.revision})` : (words[/** @type {keyof typeof words} */ (status.state)] ?? status.state);
    place.className = status.state;
    document.title = isConnected && name ? `${name} – Gudgeon inspector` : "Gudgeon inspector";
    if (isConnected) onConnected();
  };
  on("status", event => !event.isPast && show());
  on("online", show);
  on("offline", event => {
    place.className = "failed";
    place.textContent = event.isOver ? "The inspector has ended. Start `gudgeon inspect` again." : "The inspector does not respond; trying again …";
  });
}

function showTheme() {
  const select = /** @type {HTMLSelectElement} */ (byId("theme"));
  const show = () => (document.documentElement.dataset.theme = select.value);
  select.value = localStorage.getItem("theme") ?? "";
  select.addEventListener("change", () => {
    localStorage.setItem("theme", select.value);
    show();
  });
  show();
}

showTheme();
showQuestions(byId("questions"));
showTimeline(byId("timeline"));
showStatus(tabs());
follow();
