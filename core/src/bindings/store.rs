//! The operations of a store and their replies as JSON, for stores that are objects of the host's program.
//!
//! Values, events and messages are base64, and times are milliseconds. A reply is what the method returned: `null` for nothing, a
//! value, `[value, version]`, a list of `[number, event]`, a number, `"conflict"`, `"gone"` or `"held"`; or `{"failed": reason}`.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    protocol::json,
    store::{Expect, StoreOperation, StoreReply},
};

/// Returns an operation as JSON: its name as `operation`, and its members.
pub fn operation(operation: &StoreOperation) -> String {
    let milliseconds = |ttl: &Duration| u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
    let mut members = match operation {
        StoreOperation::Get { key }
        | StoreOperation::Take { key }
        | StoreOperation::Delete { key } => json!({ "key": key }),
        StoreOperation::Put { key, value, ttl, expect } => json!({
            "key": key,
            "value": STANDARD.encode(value),
            "ttl": milliseconds(ttl),
            "expect": match expect {
                Expect::Any => json!("any"),
                Expect::Absent => json!("absent"),
                Expect::Version(version) => json!(version),
            },
        }),
        StoreOperation::Append { log, event, max_events, max_bytes, ttl } => json!({
            "log": log,
            "event": STANDARD.encode(event),
            "maxEvents": max_events,
            "maxBytes": max_bytes,
            "ttl": milliseconds(ttl),
        }),
        StoreOperation::Read { log, after } => json!({ "log": log, "after": after }),
        StoreOperation::Publish { topic, message } => {
            json!({ "topic": topic, "message": STANDARD.encode(message) })
        }
        StoreOperation::Lease { key, owner, ttl } | StoreOperation::Renew { key, owner, ttl } => {
            json!({ "key": key, "owner": owner, "ttl": milliseconds(ttl) })
        }
        StoreOperation::Release { key, owner } => json!({ "key": key, "owner": owner }),
    };
    members["operation"] = operation.name().into();
    members.to_string()
}

/// Returns the beginning of a subscription as JSON, in the form of an operation.
pub fn subscribe(number: u64, topics: &[String]) -> String {
    json!({ "operation": "subscribe", "number": number, "topics": topics }).to_string()
}

/// Returns the end of a subscription as JSON, in the form of an operation.
pub fn unsubscribe(number: u64) -> String {
    json!({ "operation": "unsubscribe", "number": number }).to_string()
}

/// Reads the reply to an operation with this name. A reply that the operation can't have is a failure that says what its method
/// must return.
pub fn reply(operation: &str, reply: &[u8]) -> StoreReply {
    let reply: Value = json::from_bytes(reply).unwrap_or(Value::Bool(false));
    if let Some(reason) = reply.get("failed").and_then(Value::as_str) {
        return StoreReply::Failed(reason.into());
    }
    let bytes = |value: &Value| STANDARD.decode(value.as_str()?).ok();
    let version = |value: &Value| value.as_u64();
    let event = |entry: &Value| match entry.as_array().map(Vec::as_slice) {
        Some([number, event]) => version(number).zip(bytes(event)),
        _ => None,
    };
    let read = match (operation, &reply) {
        ("get", Value::Null) => Some(StoreReply::Found(None)),
        ("get", Value::Array(both)) => match &both[..] {
            [value, of] => {
                bytes(value).zip(version(of)).map(|entry| StoreReply::Found(Some(entry)))
            }
            _ => None,
        },
        ("put", Value::String(text)) if text == "conflict" => Some(StoreReply::Conflict),
        ("put", reply) => version(reply).map(StoreReply::Stored),
        ("take", Value::Null) => Some(StoreReply::Taken(None)),
        ("take", reply) => bytes(reply).map(|value| StoreReply::Taken(Some(value))),
        ("delete", _) => Some(StoreReply::Deleted),
        ("append", reply) => version(reply).filter(|number| *number > 0).map(StoreReply::Appended),
        ("read", Value::String(text)) if text == "gone" => Some(StoreReply::Gone),
        ("read", Value::Array(events)) => {
            events.iter().map(event).collect::<Option<_>>().map(StoreReply::Events)
        }
        ("publish", _) => Some(StoreReply::Published),
        ("lease" | "renew", Value::String(text)) if text == "held" => Some(StoreReply::Held),
        ("lease" | "renew", reply) => version(reply).map(StoreReply::Leased),
        ("release", _) => Some(StoreReply::Released),
        _ => None,
    };
    read.unwrap_or_else(|| {
        let wanted = match operation {
            "get" => "the bytes and their version, an integer from 0, or nothing",
            "put" => "the version of the value, an integer from 0, or \"conflict\"",
            "append" => "the number of the event, an integer from 1",
            "read" => "pairs of a number and the bytes of an event, or \"gone\"",
            "lease" | "renew" => "the token of the lease, an integer from 0, or \"held\"",
            _ => "the bytes, or nothing",
        };
        StoreReply::Failed(format!("{operation}() of the store must return {wanted}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_written() {
        let key = || "k".to_owned();
        let put = |expect| StoreOperation::Put {
            key: key(),
            value: b"\xff1".into(),
            ttl: Duration::from_millis(1_500),
            expect,
        };
        for (given, written) in [
            (StoreOperation::Get { key: key() }, json!({ "operation": "get", "key": "k" })),
            (StoreOperation::Take { key: key() }, json!({ "operation": "take", "key": "k" })),
            (
                put(Expect::Absent),
                json!({ "operation": "put", "key": "k", "value": "/zE=", "ttl": 1500, "expect": "absent" }),
            ),
            (
                StoreOperation::Append {
                    log: "l".into(),
                    event: b"\xff1".into(),
                    max_events: 3,
                    max_bytes: 4,
                    ttl: Duration::from_secs(1),
                },
                json!({ "operation": "append", "log": "l", "event": "/zE=", "maxEvents": 3, "maxBytes": 4, "ttl": 1000 }),
            ),
            (
                StoreOperation::Read { log: "l".into(), after: 3 },
                json!({ "operation": "read", "log": "l", "after": 3 }),
            ),
            (
                StoreOperation::Renew {
                    key: key(),
                    owner: "o".into(),
                    ttl: Duration::from_secs(1),
                },
                json!({ "operation": "renew", "key": "k", "owner": "o", "ttl": 1000 }),
            ),
            (
                StoreOperation::Release { key: key(), owner: "o".into() },
                json!({ "operation": "release", "key": "k", "owner": "o" }),
            ),
        ] {
            let read: Value = serde_json::from_str(&operation(&given)).unwrap();
            assert_eq!(read, written);
        }
        assert!(operation(&put(Expect::Any)).contains(r#""expect":"any""#));
        assert!(operation(&put(Expect::Version(7))).contains(r#""expect":7"#));
    }

    #[test]
    fn replies_are_read() {
        for (operation, given, expected) in [
            ("get", "null", StoreReply::Found(None)),
            ("get", r#"["/zE=",3]"#, StoreReply::Found(Some((b"\xff1".into(), 3)))),
            ("put", "7", StoreReply::Stored(7)),
            ("put", r#""conflict""#, StoreReply::Conflict),
            ("take", "null", StoreReply::Taken(None)),
            ("take", r#""""#, StoreReply::Taken(Some(Vec::new()))),
            ("delete", "true", StoreReply::Deleted),
            ("append", "7", StoreReply::Appended(7)),
            ("read", r#"[[7,"/zE="]]"#, StoreReply::Events(vec![(7, b"\xff1".into())])),
            ("read", "[]", StoreReply::Events(Vec::new())),
            ("read", r#""gone""#, StoreReply::Gone),
            ("lease", "7", StoreReply::Leased(7)),
            ("renew", r#""held""#, StoreReply::Held),
            ("release", "null", StoreReply::Released),
            ("put", r#"{"failed":"it is away"}"#, StoreReply::Failed("it is away".into())),
        ] {
            assert_eq!(reply(operation, given.as_bytes()), expected, "{operation} {given}");
        }
    }

    #[test]
    fn a_reply_that_is_of_another_kind_is_a_failure() {
        for (operation, all) in [
            (
                "get",
                &["7", "true", "[]", r#""/zE=""#, r#"["/zE="]"#, r#"["/zE=",-1]"#, r#"["!",1]"#][..],
            ),
            ("put", &["null", "true", "-1", "1.5", r#""stored""#, "[1]", "{}", ""]),
            ("append", &["null", "0", "-1", r#""gone""#]),
            ("read", &["null", "7", "[7]", "[[7]]", r#"[["/zE=",7]]"#, r#""held""#]),
            ("lease", &["null", "true", "-1", r#""conflict""#]),
            ("take", &["7", "false", r#""!""#, "[]", r#"["/zE=",1]"#]),
        ] {
            for given in all {
                let StoreReply::Failed(reason) = reply(operation, given.as_bytes()) else {
                    panic!("{operation} {given}")
                };
                assert!(reason.starts_with(&format!("{operation}() of the store must return")));
            }
        }
    }
}
