/** A server of a few lines, for what our own server would never do. */
import { EventEmitter, on } from "node:events";

const HELPERS = `
  const answer = ({ id }, result) => send({ id, result });
  const refuse = ({ id }, code, message, data) => send({ id, error: { code, message, data } });
  const ALL = { tools: { listChanged: true }, resources: {}, prompts: {}, completions: {}, logging: {} };
  const legacy = (request, version = "2025-11-25", capabilities = ALL) => {
    if (request.method === "server/discover") refuse(request, -32601, "Method not found");
    else if (request.method === "initialize")
      answer(request, { protocolVersion: version, capabilities, serverInfo: { name: "fake", version: "1" } });
    else if (request.method === "ping") answer(request, {});
    else return false;
    return true;
  };
  const modern = (request, capabilities = ALL) => {
    if (request.method !== "server/discover") return false;
    answer(request, { resultType: "complete", supportedVersions: ["2026-07-28"], capabilities, ttlMs: 0, cacheScope: "private" });
    return true;
  };
  const text = (...texts) => ({ resultType: "complete", content: texts.map((text) => ({ type: "text", text: String(text) })) });
`;
const PRELUDE = `
  process.stdout.on("error", () => process.exit());
  const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\\n");
  ${HELPERS}
  require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => receive(JSON.parse(line)));
`;

/** `receive` is the body of a function of one message, in which the names above can be used. */
export function fake(receive, before = "") {
  const args = ["-e", `${PRELUDE}\n${before}\nfunction receive(message) {\n${receive}\n}`];
  return { command: process.execPath, args };
}

/** The same as a transport in this process. */
export function fakeInMemory(receive, before = "") {
  const sent = new EventEmitter();
  const frames = on(sent, "frame", { close: ["end"] });
  const send = (message) => void sent.emit("frame", JSON.stringify({ jsonrpc: "2.0", ...message }));
  const hear = new Function("send", `${HELPERS}\n${before}\nreturn (message) => {\n${receive}\n}`)(send);
  return {
    receive: async () => (await frames.next()).value?.[0],
    send: async (message) => void hear(JSON.parse(message)),
    close: async () => void sent.emit("end"),
  };
}

/** Our own server in a child process; `source` registers on `app`. */
export function own(source, options = "{}") {
  const code = `import * as g from "gudgeon"; const app = new g.Server("own", ${options});\n${source}\nawait app.run();`;
  return { command: process.execPath, args: ["--input-type=module", "-e", code], cwd: new URL("../..", import.meta.url).pathname };
}
