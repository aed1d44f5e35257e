// @ts-check
// The program that serves this page: its events, and what it is asked to do.

import { parse } from "./json.js";

/**
 * @typedef {import("./dom.js").Json} Json
 * @typedef {{ onProgress?: (progress: Json) => void, onStart?: (cancel: () => void) => void, onDone?: (event: Json) => void }} CallOptions
 */

/** A failure of a call, with the members that the program sends. */
export class CallError extends Error {
  /** @param {Json} error */
  constructor(error) {
    super(error.message);
    /** @type {Json} */
    this.details = error;
  }
}

/** The events by their type; `detail` is the event, with `isPast` for those before this page was opened. */
export const events = new EventTarget();

/** The last state that the program sent. @type {{ status: Json, settings: Json, hasStart: boolean }} */
export const state = { status: { state: "disconnected" }, settings: null, hasStart: false };

/** @type {Map<string, { resolve: (result: Json) => void, reject: (error: Error) => void, options: CallOptions }>} */
const calls = new Map();
const page = crypto.randomUUID();
let count = 0;
/** The number of the last event before this page was opened. @type {number | null} */
let past = null;

/**
 * Registers a listener of one type of event.
 * @param {string} type
 * @param {(event: Json) => void} listener
 */
export function on(type, listener) {
  events.addEventListener(type, event => listener(/** @type {CustomEvent} */ (event).detail));
}

/** Begins to follow the events. */
export function follow() {
  const source = new EventSource("api/events");
  source.addEventListener("snapshot", event => {
    const snapshot = parse(event.data);
    const isFirst = past === null;
    past ??= Number(snapshot.last);
    Object.assign(state, { status: snapshot.status, settings: snapshot.settings, hasStart: snapshot.hasStart });
    emit("snapshot", { ...snapshot, isFirst });
    emit("status", snapshot.status);
  });
  source.addEventListener("missing", event => emit("missing", { count: Number(event.data) }));
  source.addEventListener("message", event => take(parse(event.data)));
  source.addEventListener("open", () => emit("online", {}));
  source.addEventListener("error", () => emit("offline", { isOver: source.readyState === EventSource.CLOSED }));
}

/** @param {string} type @param {Json} detail */
function emit(type, detail) {
  events.dispatchEvent(new CustomEvent(type, { detail }));
}

/** @param {Json} event */
function take(event) {
  event.isPast = event.number <= (past ?? 0);
  if (event.type === "status" && !event.isPast) {
    state.status = event;
    state.settings = event.settings;
  } else if (event.type === "done") {
    void finish(event);
  } else if (event.type === "progress") {
    calls.get(event.call)?.options.onProgress?.(event);
  }
  emit(event.type, event);
}

/** @param {Json} event */
async function finish(event) {
  const call = calls.get(event.call);
  if (!call) return;
  calls.delete(event.call);
  if (event.error) {
    call.reject(new CallError(event.error));
    return;
  }
  try {
    call.options.onDone?.(event);
    call.resolve(event.body ? parse(await body(event.body)) : event.result);
  } catch (error) {
    call.reject(/** @type {Error} */ (error));
  }
}

/**
 * Has the program call the server, and returns the result.
 * @param {Json} operation
 * @param {CallOptions} [options]
 * @returns {Promise<Json>}
 */
export async function call(operation, options = {}) {
  count += 1;
  const id = `${page}-${count}`;
  const result = new Promise((resolve, reject) => calls.set(id, { resolve, reject, options }));
  try {
    await post("call", { call: id, operation });
    options.onStart?.(() => void post("cancel", { id }));
  } catch (error) {
    calls.delete(id);
    throw error;
  }
  return result;
}

/**
 * Sends a request to the program.
 * @param {string} path
 * @param {Json} value
 * @returns {Promise<Json>}
 */
export async function post(path, value) {
  const response = await fetch(`api/${path}`, { method: "POST", body: JSON.stringify(value) });
  const text = await response.text();
  if (response.ok) return parse(text);
  let message = text;
  try {
    message = JSON.parse(text).message;
  } catch {
    // It is not JSON, so it is the message.
  }
  throw new CallError({ kind: "usage", message });
}

/**
 * Returns a whole message or result.
 * @param {number} number
 */
export async function body(number) {
  const response = await fetch(`api/bodies/${number}`);
  const text = await response.text();
  if (!response.ok) throw new CallError({ kind: "lost", message: text });
  return text;
}

/** Returns the capabilities of the connected server. @returns {Json} */
export function capabilities() {
  return state.status.server?.capabilities ?? {};
}

/** @returns {boolean} */
export function isConnected() {
  return state.status.state === "connected";
}
