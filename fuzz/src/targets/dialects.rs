//! The spellings of messages: every revision and dialect reads what every other one writes.
//!
//! A `>` line is a frame of a client. It is read and written, lifted by every revision's tables, and asked by one client of
//! each revision and dialect of the same server: all of them get the same content. A `<` line is a result of a server of
//! dialect 0.7.

use gudgeon::{
    protocol::{
        ClientCapabilities, Dialect, ErrorObject, Frame, Implementation, Malformed, Message,
        Method, Params, Revision,
    },
    router::{Failure, Reply},
    session::client::ClientConfig,
    test_pair::{Pair, Sent},
    wire::{Wire, lift_error, lift_request, lift_result, read_semantic_initialize},
};
use serde_json::{Value, value::RawValue};

use crate::{
    script::{check_frame, epoch, steps},
    server::{components, name_of},
};

pub(super) const SEEDS: &[&str] = &[
    r#"> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"é\u2028"},"x":[1e0]}}
> {"jsonrpc":"2.0","id":"a\"","method":"prompts/get","params":{"name":"greet","arguments":{"name":"Ada"}}}
> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
> {"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no","data":[1]}}
> {"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"fixture://search?q=a&limit=2"}}"#,
    r#"< {"tools":[{"name":"a","parameters":{"type":"object"}}],"resources":[{"uri":"a://b"}]}
< {"messages":[{"role":"user","content":"x"}],"content":[{"type":"text","text":"y"}],"contents":"z","code":3001,"message":"m"}
< {"protocolVersion":"0.7.0","serverInfo":{"name":"s","version":"1"},"capabilities":{}}"#,
];

const SPELLINGS: [(Revision, Option<Dialect>); 7] = [
    (Revision::V2024_11_05, None),
    (Revision::V2025_03_26, None),
    (Revision::V2025_06_18, None),
    (Revision::V2025_11_25, None),
    (Revision::V2026_07_28, None),
    (Revision::V2025_11_25, Some(Dialect::Bare)),
    (Revision::V2025_11_25, Some(Dialect::V0_7)),
];

pub(super) fn run(input: &[u8]) {
    let mut asked = 0;
    for (name, argument) in steps(input).take(50) {
        match name {
            b'>' => {
                check_spelling(argument);
                if let Frame::One(Ok(Message::Request { method, params, .. })) =
                    Frame::parse(argument)
                {
                    lift(&method, &params);
                    // Each of these opens a connection for every spelling.
                    if asked < 2 {
                        asked += usize::from(ask(&method, &params.without_meta()));
                    }
                }
            }
            b'<' => read_results(&String::from_utf8_lossy(argument)),
            _ => (),
        }
    }
}

/// Checks that a frame that is read, written and read again is the same.
fn check_spelling(bytes: &[u8]) {
    let read = Frame::parse(bytes);
    let written = write_frame(&read);
    let Some(written) = written else { return };
    let again = Frame::parse(written.as_bytes());
    assert_eq!(write_frame(&again).as_deref(), Some(&*written));
    assert_eq!(format!("{read:?}"), format!("{again:?}"), "{written}");
}

/// Writes a frame; `None` if some of it is not a message.
fn write_frame(frame: &Frame<'_>) -> Option<String> {
    match frame {
        Frame::One(one) => write_message(one),
        Frame::Batch(all) => {
            let all: Option<Vec<_>> = all.iter().map(write_message).collect();
            all.map(|messages| format!("[{}]", messages.join(",")))
        }
    }
}

fn write_message(message: &Result<Message<'_>, Malformed>) -> Option<String> {
    let quoted = |text: &str| Value::String(text.into()).to_string();
    let head = r#"{"jsonrpc":"2.0""#;
    Some(match message.as_ref().ok()? {
        Message::Request { id, method, params } => {
            format!(r#"{head},"id":{id},"method":{}{}}}"#, quoted(method), write_params(params))
        }
        Message::Notification { method, params } => {
            format!(r#"{head},"method":{}{}}}"#, quoted(method), write_params(params))
        }
        Message::Response { id, outcome, .. } => {
            let id = id.as_ref().map_or("null", |id| id.as_json());
            match outcome {
                Ok(result) => format!(r#"{head},"id":{id},"result":{result}}}"#),
                Err(error) => {
                    format!(
                        r#"{head},"id":{id},"error":{}}}"#,
                        serde_json::to_string(error).unwrap()
                    )
                }
            }
        }
    })
}

fn write_params(params: &Params<'_>) -> String {
    match params {
        Params::Absent => String::new(),
        Params::Other => r#","params":[]"#.into(),
        Params::Object(members) => {
            let name = |key: &str| Value::String(key.into()).to_string();
            let members: Vec<_> =
                members.iter().map(|(key, value)| format!("{}:{value}", name(key))).collect();
            format!(r#","params":{{{}}}"#, members.join(","))
        }
    }
}

/// Reads a request by the tables of each spelling: twice with the same outcome.
fn lift(method: &str, params: &Params<'_>) {
    for (revision, dialect) in SPELLINGS {
        let wire = Wire::spelled(revision, dialect);
        let read = || format!("{:?}", lift_request(wire, method, params));
        assert_eq!(read(), read());
        // Dialect 0.7 has one word for both lists of resources.
        if let Some(method) = wire.method(method).filter(|_| dialect != Some(Dialect::V0_7)) {
            assert_eq!(wire.method(wire.word(method)), Some(method), "a word has one meaning");
        }
    }
}

/// Asks the same of the same server in every spelling, and compares what comes back. Returns whether it could be asked.
fn ask(method: &str, params: &RawValue) -> bool {
    let compared = match Method::parse(method) {
        Some(Method::CallTool) => "content",
        Some(Method::GetPrompt) => "messages",
        Some(Method::ReadResource) => "contents",
        _ => return false,
    };
    let mut answers = Vec::new();
    for (revision, dialect) in SPELLINGS {
        let config = ClientConfig {
            info: Implementation::new("c", "1"),
            capabilities: ClientCapabilities::default(),
            revisions: vec![revision],
            last_revision: None,
            dialect,
            probe_timeout: Some(std::time::Duration::from_secs(5)),
            connect_timeout: None,
            log_level: None,
        };
        let mut pair =
            Pair::new(epoch(), config, components(), |run| answer(name_of(&run.handler)));
        pair.connect().expect("the server speaks every revision and dialect");
        let result = pair.request(method, params.get());
        for sent in &pair.wire {
            let (Sent::ByClient(frame) | Sent::ByServer(frame)) = sent;
            check_frame(frame.as_bytes());
        }
        let text = result.ok().and_then(|raw| {
            let result: Value = serde_json::from_str(raw.get()).unwrap();
            // The failures that are results differ.
            (result["isError"] != true).then(|| texts(&result[compared]))
        });
        answers.push((revision, dialect, text));
    }
    // Dialect 0.7 has other arguments and content.
    let comparable = &answers[..6];
    let differs = comparable.iter().any(|answer| answer.2 != comparable[0].2);
    assert!(!differs, "{method} {params}: {comparable:?}");
    true
}

fn answer(handler: &str) -> Option<Result<Reply, Failure>> {
    match handler {
        "wait" | "slow" | "drop" | "confirm" | "interview" => None,
        "add" => Some(Ok(Reply::Json("3".into()))),
        "book" => Some(Ok(Reply::Json(r#"{"id":1,"title":"Dune"}"#.into()))),
        "bytes" => Some(Ok(Reply::Blob("AAEC".into()))),
        "fail" => Some(Err(Failure::Tool { message: "no".into(), meta: None })),
        "crash" => Some(Err(Failure::Cancelled)),
        name => Some(Ok(Reply::Text(name.into()))),
    }
}

/// Returns all texts of some content.
fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => {
            let member = |name: &str| members.get(name).map(texts).unwrap_or_default();
            [member("text"), member("blob"), member("content")].concat()
        }
        Value::String(text) => vec![text.clone()],
        _ => Vec::new(),
    }
}

/// Reads a result or error of a server of dialect 0.7 for every method.
fn read_results(text: &str) {
    let _ = read_semantic_initialize(text);
    for method in Method::ALL {
        for uri in [None, Some("a://b")] {
            if let Ok(lifted) = lift_result(*method, uri, text) {
                check_frame(lifted.get().replace('\n', " ").as_bytes());
            }
        }
        if let Ok(error) = serde_json::from_str::<ErrorObject>(text) {
            let _ = lift_error(*method, &error);
        }
    }
}
