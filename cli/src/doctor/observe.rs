//! Checks of every message that a server sends, whatever it answers.

use std::collections::HashMap;

use gudgeon::Revision;
use serde_json::Value;

use super::{
    check::{Check, Section, sections},
    report::{Report, shown},
    wire::Message,
};

pub const CHECKS: &[&Check] = &[
    &STDOUT,
    &VALID,
    &RESPONSE_ID,
    &NO_REQUESTS,
    &UNDECLARED,
    &LOGGING,
    &QUIET_LOG,
    &CODES,
    &RESULT_TYPE,
    &TOKEN,
    &INCREASES,
    &STOPS,
];

static STDOUT: Check = Check {
    id: "stdio.stdout",
    title: "writes nothing but messages to stdout",
    section: sections::STDIO,
    fix: "write logs to stderr; in Python `print(…, file=sys.stderr)`, in Node `console.error`",
    ..Check::ANY
};
static VALID: Check = Check {
    id: "messages.valid",
    title: "sends valid JSON-RPC 2.0 messages",
    section: sections::MESSAGES,
    fix: "a message has \"jsonrpc\": \"2.0\" and one of \"method\", \"result\" and \"error\"; an error has an integer \"code\" and a string \"message\"",
    ..Check::ANY
};
static RESPONSE_ID: Check = Check {
    id: "messages.response-id",
    title: "answers each request once, with the id of the request",
    section: sections::RESPONSES,
    fix: "return the id as it came, with its JSON type, and in one response only",
    ..Check::ANY
};
static NO_REQUESTS: Check = Check {
    id: "messages.no-requests",
    title: "sends no requests to the client",
    section: Section::new("basic/transports/stdio#receiving-messages"),
    fix: "ask the client by a result with \"resultType\": \"input_required\"",
    ..Check::MODERN
};
static UNDECLARED: Check = Check {
    id: "capabilities.client",
    title: "uses only capabilities that the client declared",
    section: Section::new("basic/lifecycle#operation"),
    fix: "look into the capabilities of `initialize` before asking the client",
    since: Revision::V2025_06_18,
    ..Check::LEGACY
};
static LOGGING: Check = Check {
    id: "capabilities.logging",
    title: "declares `logging` if it sends log messages",
    section: Section::new("server/utilities/logging#capabilities"),
    fix: "declare the capability `logging`, or send no notifications/message",
    ..Check::ANY
};
static QUIET_LOG: Check = Check {
    id: "logging.unasked",
    title: "sends log messages only for requests that ask for them",
    section: Section::new("server/utilities/logging#per-request-log-level"),
    fix: "send notifications/message only if `_meta` of the request has `io.modelcontextprotocol/logLevel`",
    ..Check::MODERN
};
static CODES: Check = Check {
    id: "messages.reserved-codes",
    title: "uses only error codes that the revision defines, of those that it reserves",
    section: Section::new("basic#error-codes"),
    fix: "use -32602 for a missing resource, and codes outside -32768 to -32000 for errors of your own",
    ..Check::MODERN
};
static RESULT_TYPE: Check = Check {
    id: "messages.result-type",
    title: "names the type of each result",
    section: Section::new("basic#result-responses"),
    fix: "add \"resultType\": \"complete\" to the result",
    ..Check::MODERN
};
static TOKEN: Check = Check {
    id: "progress.token",
    title: "reports progress only for tokens of requests in progress",
    section: Section::moved(
        "basic/patterns/progress#behavior-requirements",
        "basic/utilities/progress#behavior-requirements",
    ),
    fix: "send notifications/progress only if the request has `_meta.progressToken`, with that token",
    ..Check::ANY
};
static INCREASES: Check = Check {
    id: "progress.increases",
    title: "increases the progress with each notification",
    section: Section::moved(
        "basic/patterns/progress#progress-flow",
        "basic/utilities/progress#progress-flow",
    ),
    fix: "leave out a notification whose progress is not above the last one",
    // 2024-11-05 has the rule in its schema only.
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static STOPS: Check = Check {
    id: "progress.stops",
    title: "sends no progress after the response",
    section: Section::moved(
        "basic/patterns/progress#implementation-notes",
        "basic/utilities/progress#implementation-notes",
    ),
    fix: "await the notifications before the handler returns",
    ..Check::ANY
};

/// Methods by which a server asks a client, all of which need a capability of the client.
const ASKING: [&str; 3] = ["sampling/createMessage", "roots/list", "elicitation/create"];

/// The messages of a connection, as far as rules depend on them.
#[derive(Debug, Default)]
pub struct Observer {
    pub is_modern: bool,
    pub is_stdio: bool,
    capabilities: Option<Value>,
    /// Requests by the JSON of their id: how many responses came.
    requests: HashMap<String, usize>,
    /// Requests whose log level was set.
    may_log: bool,
    tokens: HashMap<String, Progress>,
    findings: Vec<(&'static Check, String)>,
}

/// The progress of one request.
#[derive(Debug)]
struct Progress {
    request: String,
    last: Option<f64>,
    is_over: bool,
}

impl Observer {
    /// Takes the capabilities from the result of the handshake.
    pub fn greet(&mut self, greeting: &Value) {
        self.capabilities = greeting.get("capabilities").cloned();
    }

    /// Records a message to the server.
    pub fn sent(&mut self, text: &str) {
        let value: Value = serde_json::from_str(text).unwrap_or_default();
        let messages = match &value {
            Value::Array(batch) => batch.as_slice(),
            _ => std::slice::from_ref(&value),
        };
        for message in messages {
            let Some(id) = message.get("id").filter(|id| !id.is_null()) else { continue };
            self.requests.entry(id.to_string()).or_default();
            let meta = &message["params"]["_meta"];
            self.may_log |= meta.get("io.modelcontextprotocol/logLevel").is_some();
            if let Some(token) = meta.get("progressToken") {
                let progress = Progress { request: id.to_string(), last: None, is_over: false };
                self.tokens.insert(token.to_string(), progress);
            }
        }
    }

    /// Accepts a response with this id too.
    pub fn allow(&mut self, id: &Value) {
        self.requests.entry(id.to_string()).or_default();
    }

    /// Checks a message of the server.
    pub fn received(&mut self, message: &Message) {
        match &message.value {
            Value::Array(batch) => {
                for each in batch {
                    self.check(&Message { raw: each.to_string(), value: each.clone() });
                }
            }
            Value::Object(_) => self.check(message),
            _ if self.is_stdio => self.find(&STDOUT, message),
            _ => self.find(&VALID, message),
        }
    }

    fn check(&mut self, message: &Message) {
        let value = &message.value;
        if !is_valid(value) {
            self.find(&VALID, message);
            return;
        }
        match value.get("method").and_then(Value::as_str) {
            Some(method) => self.check_method(method, message),
            None => self.check_response(message),
        }
    }

    fn check_method(&mut self, method: &str, message: &Message) {
        if message.value.get("id").is_some() {
            if self.is_modern {
                self.find(&NO_REQUESTS, message);
            } else if ASKING.contains(&method) {
                self.find(&UNDECLARED, message);
            }
        }
        let declares = |name: &str| {
            self.capabilities.as_ref().is_none_or(|capabilities| capabilities.get(name).is_some())
        };
        match method {
            "notifications/message" => {
                if !declares("logging") {
                    self.find(&LOGGING, message);
                }
                if self.is_modern && !self.may_log {
                    self.find(&QUIET_LOG, message);
                }
            }
            "notifications/progress" => self.check_progress(message),
            _ => (),
        }
    }

    fn check_progress(&mut self, message: &Message) {
        let params = &message.value["params"];
        let token = params.get("progressToken").map(ToString::to_string).unwrap_or_default();
        let current = params.get("progress").and_then(Value::as_f64);
        let check = match self.tokens.get_mut(&token) {
            None => Some(&TOKEN),
            Some(progress) if progress.is_over => Some(&STOPS),
            Some(progress) => {
                let grows = match (progress.last, current) {
                    (Some(last), Some(current)) => current > last,
                    (None, Some(_)) => true,
                    (_, None) => false,
                };
                progress.last = current;
                (!grows).then_some(&INCREASES)
            }
        };
        if let Some(check) = check {
            self.find(check, message);
        }
    }

    fn check_response(&mut self, message: &Message) {
        let value = &message.value;
        // An error without an id, or with null, answers a message whose id could not be read.
        if let Some(id) = value.get("id").filter(|id| !id.is_null()) {
            let id = id.to_string();
            self.tokens
                .values_mut()
                .filter(|progress| progress.request == id)
                .for_each(|progress| progress.is_over = true);
            match self.requests.get_mut(&id) {
                Some(count) if *count == 0 => *count = 1,
                _ => self.find(&RESPONSE_ID, message),
            }
        } else if value.get("result").is_some() {
            self.find(&RESPONSE_ID, message);
        }
        if !self.is_modern {
            return;
        }
        let code = value.get("error").and_then(|error| error["code"].as_i64());
        let is_reserved = |code: i64| matches!(code, -32099..=-32023 | -32002) || code == -32042;
        if code.is_some_and(is_reserved) {
            self.find(&CODES, message);
        }
        if let Some(result) = value.get("result")
            && !result.get("resultType").is_some_and(Value::is_string)
        {
            self.find(&RESULT_TYPE, message);
        }
    }

    fn find(&mut self, check: &'static Check, message: &Message) {
        self.findings.push((check, shown(&message.raw)));
    }

    /// Records the findings, one of each kind, and the checks that found nothing.
    pub fn finish(self, report: &mut Report, revision: Revision) {
        for check in CHECKS.iter().filter(|check| self.is_stdio || check.id != STDOUT.id) {
            let found = self.findings.iter().find(|finding| finding.0.id == check.id);
            report.record(check, revision, found.map_or(Ok(()), |finding| Err(finding.1.clone())));
        }
    }
}

/// Returns whether a value is a JSON-RPC 2.0 message.
pub fn is_valid(message: &Value) -> bool {
    let error = message.get("error");
    let has_result = message.get("result").is_some_and(Value::is_object);
    let is_error = |error: &Value| error["code"].is_i64() && error["message"].is_string();
    let kinds = [message.get("method").is_some(), message.get("result").is_some(), error.is_some()];
    message.get("jsonrpc").is_some_and(|version| version == "2.0")
        && kinds.iter().filter(|present| **present).count() == 1
        && message.get("method").is_none_or(Value::is_string)
        && (message.get("result").is_none() || has_result)
        && error.is_none_or(is_error)
        && message.get("id").is_none_or(|id| id.is_string() || id.is_number() || id.is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(is_modern: bool, sent: &[&str], received: &[&str]) -> Vec<&'static str> {
        let mut observer = Observer { is_modern, is_stdio: true, ..Observer::default() };
        observer.greet(&serde_json::json!({"capabilities": {}}));
        for text in sent {
            observer.sent(text);
        }
        for text in received {
            observer.received(&Message::new((*text).to_owned()));
        }
        observer.findings.iter().map(|finding| finding.0.id).collect()
    }

    #[test]
    fn a_response_has_the_id_of_one_request() {
        let sent = [r#"{"jsonrpc":"2.0","id":"7","method":"ping"}"#];
        let right = r#"{"jsonrpc":"2.0","id":"7","result":{}}"#;
        assert!(found(false, &sent, &[right]).is_empty());
        assert_eq!(found(false, &sent, &[right, right]), ["messages.response-id"]);
        let number = r#"{"jsonrpc":"2.0","id":7,"result":{}}"#;
        assert_eq!(found(false, &sent, &[number]), ["messages.response-id"]);
        let nobody = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}"#;
        assert!(found(false, &sent, &[nobody]).is_empty());
    }

    #[test]
    fn messages_that_are_none_are_found() {
        for (line, id) in [
            ("Server started", "stdio.stdout"),
            ("42", "stdio.stdout"),
            (r#"{"jsonrpc":"1.0","method":"x"}"#, "messages.valid"),
            (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"E","message":"x"}}"#, "messages.valid"),
            (r#"{"jsonrpc":"2.0","method":"notifications/message"}"#, "capabilities.logging"),
            (r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#, "capabilities.client"),
        ] {
            assert_eq!(found(false, &[], &[line]), [id], "{line}");
        }
    }

    #[test]
    fn progress_grows_and_ends_with_the_response() {
        let sent =
            [r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"_meta":{"progressToken":"t"}}}"#];
        let progress = |number: u8| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":"t","progress":{number}}}}}"#
            )
        };
        let (one, two) = (progress(1), progress(2));
        let done = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert!(found(false, &sent, &[&one, &two, done]).is_empty());
        assert_eq!(found(false, &sent, &[&one, &one]), ["progress.increases"]);
        assert_eq!(found(false, &sent, &[done, &one]), ["progress.stops"]);
        assert_eq!(found(false, &[], &[&one]), ["progress.token"]);
    }

    #[test]
    fn modern_results_have_a_type_and_modern_codes() {
        let sent = [r#"{"jsonrpc":"2.0","id":1,"method":"x"}"#];
        let untyped = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        assert_eq!(found(true, &sent, &[untyped]), ["messages.result-type"]);
        let old = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"x"}}"#;
        assert_eq!(found(true, &sent, &[old]), ["messages.reserved-codes"]);
    }
}
