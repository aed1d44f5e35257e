//! Options of other SDKs for Python: the option here, or the fix.

use super::{Hints, Taker};

const AUTH: &str = "write Server('…', auth=…), or mount the server in an app that checks who calls, and name the caller with app.asgi(principal=…)";
const HTTP: &str = "pass it to app.run('http://127.0.0.1:8000/mcp', …)";
const ADDRESS: &str = "write the address: app.run('http://127.0.0.1:8000/mcp')";

/// Returns the advice for options of other SDKs.
pub(super) fn for_taker(taker: Taker) -> &'static [Hints] {
    match taker {
        Taker::Server => &[SERVER],
        Taker::Tool => &[COMPONENT, TOOL],
        Taker::Resource | Taker::Prompt => &[COMPONENT],
        Taker::Client => &[CLIENT],
        Taker::Call | Taker::CallRound | Taker::ReadResource | Taker::Complete | Taker::Request => {
            &[CALL]
        }
        Taker::Subscribe => &[SUBSCRIBE],
        Taker::Retry => &[],
        Taker::Http => &[HTTP_OPTIONS],
    }
}

const SERVER: Hints = &[
    ("auth_server_provider", AUTH),
    ("token_verifier", AUTH),
    ("event_store", HTTP),
    ("host", ADDRESS),
    ("port", ADDRESS),
    ("streamable_http_path", ADDRESS),
    ("sse_path", "pass legacy_sse=True to app.run('http://127.0.0.1:8000/mcp')"),
    ("message_path", "pass legacy_sse=True to app.run('http://127.0.0.1:8000/mcp')"),
    ("stateless_http", "each revision is served as it needs; leave it out"),
    ("json_response", "the answer is JSON unless it has to stream; leave it out"),
    ("middleware", "write @app.middleware above each one"),
    ("tools", "write @app.tool above each one"),
    ("resources", "write @app.resource(uri) above each one"),
    ("prompts", "write @app.prompt above each one"),
    (
        "mask_error_details",
        "errors are hidden unless expose_errors= or debug=True says otherwise; leave it out",
    ),
    ("strict_input_validation", "arguments are always checked; leave it out"),
    ("on_duplicate_tools", "a name that is taken is always refused; leave it out"),
    ("log_level", "set it with Python's logging module"),
];

const COMPONENT: Hints = &[
    ("auth", "write scopes=['books:write'] here, and Server('…', auth=…) for the callers"),
    ("annotation", "annotations"),
    ("mimetype", "mime_type"),
    ("version", "write it in description= or meta="),
    ("task", "this version has no tasks"),
];

const TOOL: Hints = &[
    ("output_schema", "output"),
    (
        "structured_output",
        "write output=None for a result without a schema; leave it out otherwise",
    ),
    ("input_schema", "input"),
    ("parameters", "input"),
    ("exclude_args", "write Annotated[…, Depends(…)] for what the server fills in"),
    ("serializer", "return a str, or content such as Text"),
];

const CLIENT: Hints = &[
    (
        "transport",
        "Client takes the target first: a URL, a command as a list of words, a Path or a Server",
    ),
    ("sampling_handler", "on_sample"),
    ("sampling_callback", "on_sample"),
    ("elicitation_handler", "on_elicit"),
    ("elicitation_callback", "on_elicit"),
    ("log_handler", "on_log"),
    ("logging_callback", "on_log"),
    ("progress_handler", "on_progress"),
    ("list_roots_callback", "roots"),
    ("message_handler", "write on_log=, on_progress= or on_list_changed="),
    ("message_callback", "write on_log=, on_progress= or on_list_changed="),
    ("init_timeout", "timeout"),
    ("read_timeout_seconds", "timeout"),
    ("store", "a client keeps nothing; leave it out"),
];

const SUBSCRIBE: Hints = &[("uri", "uris")];

const CALL: Hints = &[
    ("progress_handler", "on_progress"),
    ("progress_callback", "on_progress"),
    ("read_timeout_seconds", "timeout"),
    ("timeout_seconds", "timeout"),
];

const HTTP_OPTIONS: Hints = &[
    ("host", ADDRESS),
    ("port", ADDRESS),
    ("path", ADDRESS),
    ("mount_path", ADDRESS),
    ("auth", AUTH),
    ("log_level", "set it with Python's logging module"),
    ("show_banner", "leave it out"),
    ("forwarded_allow_ips", "trusted_proxies"),
    ("proxy_headers", "trusted_proxies"),
    ("timeout_keep_alive", "idle_timeout"),
    ("stateless_http", "each revision is served as it needs; leave it out"),
    ("json_response", "the answer is JSON unless it has to stream; leave it out"),
];
