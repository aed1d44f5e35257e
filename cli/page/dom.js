// @ts-check
// Elements of the page. Text of a server becomes a text node only, and addresses are checked here, in one place.

/**
 * A value of JSON. Servers may send anything, so its members are checked where they are used.
 * @typedef {any} Json
 * @typedef {Node | string | number | null | undefined | false} Child
 * @typedef {Record<string, unknown>} Attributes
 */

const IMAGES = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;
const AUDIO = /^audio\/[\w.+-]+$/;
const VIDEO = /^video\/[\w.+-]+$/;
let ids = 0;

/**
 * Creates an element. Functions among the attributes are listeners of the event with that name; false, null and
 * undefined leave an attribute out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, /** @type {EventListener} */ (value));
    else if (name === "value" && "value" in element) element.value = String(value);
    else if (name !== "href" && name !== "src") element.setAttribute(name, value === true ? "" : String(value));
    else if (isSafe(String(value))) element.setAttribute(name, String(value));
  }
  add(element, ...children);
  return element;
}

/**
 * Appends texts and nodes.
 * @param {Element} element
 * @param {...Child} children
 */
export function add(element, ...children) {
  const shown = children.filter(child => child !== null && child !== undefined && child !== false);
  element.append(...shown.map(child => (child instanceof Node ? child : String(child))));
}

/**
 * Replaces the children of an element.
 * @param {Element} element
 * @param {...Child} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  add(element, ...children);
}

/** Returns an id that no other element has. */
export function newId() {
  ids += 1;
  return `e${ids}`;
}

/**
 * Returns an `http` or `https` URL, or null for anything else.
 * @param {string} text
 * @returns {URL | null}
 */
export function webUrl(text) {
  try {
    const url = new URL(text);
    return url.protocol === "http:" || url.protocol === "https:" ? url : null;
  } catch {
    return null;
  }
}

/** @param {string} address */
function isSafe(address) {
  return address.startsWith("#") || address.startsWith("blob:") || address.startsWith("api/") || webUrl(address) !== null;
}

/**
 * Returns a link that opens in a tab of its own, or the text alone where the URL is not a web page's.
 * @param {string} url
 * @param {...Child} children
 */
export function link(url, ...children) {
  const shown = children.length ? children : [url];
  if (!webUrl(url)) return h("span", {}, ...shown);
  return h("a", { href: url, target: "_blank", rel: "noopener noreferrer" }, ...shown);
}

/** Binary data, which has an object URL as long as it is in the page: a browser keeps the data of URLs that are not revoked. */
class BinaryData extends HTMLElement {
  #blob;
  #show;
  #url = "";

  /**
   * @param {Blob} blob
   * @param {(url: string) => HTMLElement} show
   */
  constructor(blob, show) {
    super();
    this.#blob = blob;
    this.#show = show;
  }

  connectedCallback() {
    this.#url = URL.createObjectURL(this.#blob);
    this.replaceChildren(this.#show(this.#url));
  }

  disconnectedCallback() {
    URL.revokeObjectURL(this.#url);
    this.replaceChildren();
  }
}
customElements.define("binary-data", BinaryData);

/**
 * Returns the element that shows or plays binary data: an image, audio or video where the type is one, and a download.
 * @param {string} base64
 * @param {string | undefined} type
 * @param {string} name
 */
export function media(base64, type, name) {
  const bytes = decode(base64);
  if (!bytes) return h("p", { class: "problem" }, `${name}: the data is not valid base64`);
  const kind = String(type ?? "application/octet-stream");
  // Only types that browsers do not run are passed on.
  const shown = IMAGES.test(kind) || AUDIO.test(kind) || VIDEO.test(kind) ? kind : "application/octet-stream";
  return new BinaryData(new Blob([bytes], { type: shown }), url => {
    let player;
    if (IMAGES.test(kind)) player = h("img", { src: url, alt: name });
    else if (AUDIO.test(kind)) player = h("audio", { src: url, controls: true, "aria-label": name });
    else if (VIDEO.test(kind)) player = h("video", { src: url, controls: true, "aria-label": name });
    const download = h("a", { href: url, download: fileName(name, kind) }, "Download");
    return h("figure", {}, player, h("figcaption", {}, `${kind}, ${formatSize(bytes.length)} `, download));
  });
}

/** @param {string} name @param {string} type */
function fileName(name, type) {
  const base = name.split("/").pop()?.replace(/[^\w.-]+/g, "_") || "data";
  const suffix = /^\w+\/([\w]+)/.exec(type)?.[1];
  return base.includes(".") || !suffix ? base : `${base}.${suffix}`;
}

/**
 * @param {string} base64
 * @returns {Uint8Array<ArrayBuffer> | null}
 */
export function decode(base64) {
  try {
    return Uint8Array.from(atob(base64), character => character.charCodeAt(0));
  } catch {
    return null;
  }
}

/**
 * Returns the name that the protocol uses, with the title for people beside it where that says something else.
 * @param {Json} name
 * @param {Json} title
 */
export function named(name, title) {
  const [own, shown] = [name, title].map(value => (typeof value === "string" ? value : ""));
  return own && shown && own.toLowerCase() !== shown.toLowerCase() ? `${own} (${shown})` : own || shown || "";
}

/**
 * Returns a size in words.
 * @param {number} bytes
 */
export function formatSize(bytes) {
  if (bytes < 1024) return `${bytes} B`;
  if (bytes < 1024 * 1024) return `${(bytes / 1024).toFixed(1)} KiB`;
  return `${(bytes / 1024 / 1024).toFixed(1)} MiB`;
}

/**
 * Returns a button.
 * @param {string} text
 * @param {() => void} action
 * @param {Attributes} [attributes]
 */
export function button(text, action, attributes = {}) {
  return h("button", { type: "button", click: action, ...attributes }, text);
}

/**
 * Returns a button that copies a text, and says so.
 * @param {() => string | Promise<string>} text
 */
export function copyButton(text) {
  const copy = button("Copy", async () => {
    try {
      await navigator.clipboard.writeText(await text());
      copy.textContent = "Copied";
    } catch {
      copy.textContent = "Not allowed";
    }
    setTimeout(() => (copy.textContent = "Copy"), 1500);
  });
  return copy;
}
