/** Requests over HTTP as clients of each era make them. */
import { MODERN } from "./child.mjs";

const HEADERS = { "content-type": "application/json", accept: "application/json, text/event-stream" };
let ids = 0;

/** A request of 2026-07-28. `fetching` is `fetch`, or what stands for it. */
export function modern(url, method, params = {}, { headers, fetching = fetch, ...init } = {}) {
  const name = params.name ?? params.uri;
  return fetching(url, {
    method: "POST",
    headers: {
      ...HEADERS, "mcp-protocol-version": "2026-07-28", "mcp-method": method, ...(name !== undefined && { "mcp-name": name }), ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++ids, method, params: { ...params, _meta: { ...MODERN, ...params._meta } } }),
    ...init,
  });
}

/** Calls a tool in 2026-07-28; its result, whether it comes as JSON or as the last event of a stream. */
export async function call(url, name, args = {}, options = {}) {
  const response = await modern(url, "tools/call", { name, arguments: args }, options);
  const text = await response.text();
  const json = response.headers.get("content-type").startsWith("text/event-stream") ? eventsIn(text).at(-1) : JSON.parse(text);
  if (!json.result) throw new Error(`${response.status} ${text}`);
  return json.result;
}

/** A session of 2025-11-25. */
export async function session(url, { fetching = fetch } = {}) {
  const post = (headers, message) =>
    fetching(url, { method: "POST", headers: { ...HEADERS, ...headers }, body: JSON.stringify({ jsonrpc: "2.0", ...message }) });
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } };
  const opened = await post({}, { id: 0, method: "initialize", params });
  const headers = { "mcp-session-id": opened.headers.get("mcp-session-id"), "mcp-protocol-version": "2025-11-25" };
  await opened.text();
  await (await post(headers, { method: "notifications/initialized" })).text();
  return {
    id: headers["mcp-session-id"],
    headers,
    request: (method, params) => post(headers, { id: ++ids, method, params }),
    end: () => fetching(url, { method: "DELETE", headers }),
  };
}

/** The messages of a stream of events. */
export function eventsIn(text) {
  return text
    .split("\n")
    .filter((line) => line.startsWith("data:") && line.length > 6)
    .map((line) => JSON.parse(line.slice(5)));
}

/** Reads a stream until its text fits. */
export async function readUntil(response, fits) {
  let text = "";
  const reader = response.body.getReader();
  const decoder = new TextDecoder();
  while (!fits(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`the stream ended: ${text}`);
    text += decoder.decode(value, { stream: true });
  }
  return { text, reader };
}

export async function eventually(what, milliseconds = 60_000) {
  const end = Date.now() + milliseconds;
  for (;;) {
    const value = await what();
    if (value || Date.now() > end) return value;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
