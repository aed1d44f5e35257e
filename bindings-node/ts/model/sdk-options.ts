/** Options of other SDKs, by what takes them: the option here, or what to do instead. */
import type { Advice } from "./unknown-names.js";

const AUTH = "mount the server in an app that checks who calls, and pass app.fetch(request, { principal }) or set request.principal";
const ADDRESS = 'write the address: app.run("http://127.0.0.1:8000/mcp")';
const NOT_NEEDED = "leave it out: each client is served as its revision needs";

const COMPONENT: Advice = {
  auth: AUTH,
  scopes: 'write visible: (principal) => principal?.scopes.has("…") === true',
  _meta: "meta",
};

export const SDK_OPTIONS = {
  server: {
    auth: AUTH,
    authenticate: AUTH,
    store: "a server keeps its state in its own process",
    capabilities: "leave it out: the capabilities follow from what is registered",
    host: ADDRESS,
    port: ADDRESS,
    enforceStrictCapabilities: "leave it out: a capability that the client lacks is always an error",
  },
  tool: {
    ...COMPONENT,
    outputSchema: "output",
    parameters: "input",
    paramsSchema: "input",
    argsSchema: "input",
    args: "input",
    execute: "pass the function as the third argument: app.tool(name, options, handler)",
    handler: "pass the function as the third argument: app.tool(name, options, handler)",
  },
  resource: { ...COMPONENT, uri: "pass it as the first argument: app.resource(uri, options, handler)" },
  prompt: { ...COMPONENT, argsSchema: "args", arguments: "args", input: "args", inputSchema: "args" },
  client: {
    auth: 'pass a token in headers: { authorization: "Bearer …" }',
    authProvider: 'pass a token in headers: { authorization: "Bearer …" }',
    requestInit: "headers",
    capabilities: "leave it out: the capabilities follow from onElicit, onSample and roots",
    name: "clientInfo",
    version: "clientInfo",
    sampling: "onSample",
    elicitation: "onElicit",
    versionNegotiation: "revision",
  },
  call: {
    _meta: "meta",
    resetTimeoutOnProgress: "leave it out: progress always restarts timeoutMs",
    maxTotalTimeout: "write maxTimeoutMs in the options of Client.connect()",
  },
  http: {
    host: ADDRESS,
    port: ADDRESS,
    endpoint: ADDRESS,
    path: ADDRESS,
    auth: AUTH,
    stateless: NOT_NEEDED,
    sessionIdGenerator: NOT_NEEDED,
    enableJsonResponse: NOT_NEEDED,
    enableDnsRebindingProtection: "leave it out: Host and Origin are always checked",
  },
} as const satisfies Readonly<Record<string, Advice>>;
