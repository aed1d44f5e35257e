//! Options of other SDKs for TypeScript: the option here, or the fix.

use super::{Hints, Taker};

const AUTH: &str = "write new Server(\"…\", { auth }), or mount the server in an app that checks who calls, and pass app.fetch(request, { principal }) or set request.principal";
const ADDRESS: &str = "write the address: app.run(\"http://127.0.0.1:8000/mcp\")";
const NOT_NEEDED: &str = "leave it out: each client is served as its revision needs";

/// Returns the advice for options of other SDKs.
pub(super) fn for_taker(taker: Taker) -> &'static [Hints] {
    match taker {
        Taker::Server => &[SERVER],
        Taker::Tool => &[COMPONENT, TOOL],
        Taker::Resource => &[COMPONENT, RESOURCE],
        Taker::Prompt => &[COMPONENT, PROMPT],
        Taker::Client => &[CLIENT],
        Taker::Call | Taker::CallRound | Taker::ReadResource => &[CALL],
        Taker::Complete => &[CALL, COMPLETE],
        Taker::Request => &[CALL, REQUEST],
        Taker::Subscribe => &[SUBSCRIBE],
        Taker::Retry => &[],
        Taker::Http => &[HTTP],
    }
}

const SERVER: Hints = &[
    ("authenticate", AUTH),
    ("capabilities", "leave it out: the capabilities follow from what is registered"),
    ("host", ADDRESS),
    ("port", ADDRESS),
    (
        "enforceStrictCapabilities",
        "leave it out: a capability that the client lacks is always an error",
    ),
];

const COMPONENT: Hints = &[
    (
        "auth",
        "write scopes: [\"books:write\"] here, and new Server(\"…\", { auth }) for the callers",
    ),
    ("_meta", "meta"),
];

const TOOL: Hints = &[
    ("outputSchema", "output"),
    ("parameters", "input"),
    ("paramsSchema", "input"),
    ("argsSchema", "input"),
    ("args", "input"),
    ("execute", "pass the function as the third argument: app.tool(name, options, handler)"),
    ("handler", "pass the function as the third argument: app.tool(name, options, handler)"),
];

const RESOURCE: Hints =
    &[("uri", "pass it as the first argument: app.resource(uri, options, handler)")];

const PROMPT: Hints =
    &[("argsSchema", "args"), ("arguments", "args"), ("input", "args"), ("inputSchema", "args")];

const CLIENT: Hints = &[
    ("authProvider", "auth"),
    ("requestInit", "headers"),
    ("capabilities", "leave it out: the capabilities follow from onElicit, onSample and roots"),
    ("name", "clientInfo"),
    ("version", "clientInfo"),
    ("sampling", "onSample"),
    ("elicitation", "onElicit"),
    ("versionNegotiation", "revision"),
];

const SUBSCRIBE: Hints = &[("uri", "uris")];

const CALL: Hints = &[
    ("_meta", "meta"),
    ("resetTimeoutOnProgress", "leave it out: progress always restarts timeoutMs"),
    ("maxTotalTimeout", "write maxTimeoutMs in the options of Client.connect()"),
];

const COMPLETE: Hints = &[("args", "arguments"), ("context", "arguments")];

const REQUEST: Hints =
    &[("cursor", "for one page write listToolsPage(cursor), or the same of another list")];

const HTTP: Hints = &[
    ("host", ADDRESS),
    ("port", ADDRESS),
    ("endpoint", ADDRESS),
    ("path", ADDRESS),
    ("auth", AUTH),
    ("stateless", NOT_NEEDED),
    ("sessionIdGenerator", NOT_NEEDED),
    ("enableJsonResponse", NOT_NEEDED),
    ("enableDnsRebindingProtection", "leave it out: Host and Origin are always checked"),
    ("trustProxy", "trustedProxies"),
    ("keepAliveTimeout", "idleTimeoutMs"),
];
