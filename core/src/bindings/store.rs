//! The operations of a store and their replies as JSON, for stores that are objects of the host's program.
//!
//! Values are base64. A reply is what the method returned: `null` for nothing, a value, `[value, version]`, a version or
//! `"conflict"`; or `{"failed": reason}`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::{
    protocol::json,
    store::{Expect, StoreOperation, StoreReply},
};

/// Returns an operation as JSON: `operation` and `key`; of a `put` `value`, `ttl` in milliseconds, and `expect`.
pub fn operation(operation: &StoreOperation) -> String {
    let mut members = json!({ "operation": operation.name() });
    match operation {
        StoreOperation::Get { key } | StoreOperation::Take { key } => {
            members["key"] = key.as_str().into();
        }
        StoreOperation::Put { key, value, ttl, expect } => {
            members["key"] = key.as_str().into();
            members["value"] = STANDARD.encode(value).into();
            members["ttl"] = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).into();
            members["expect"] = match expect {
                Expect::Any => "any".into(),
                Expect::Absent => "absent".into(),
                Expect::Version(version) => (*version).into(),
            };
        }
    }
    members.to_string()
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
        _ => None,
    };
    read.unwrap_or_else(|| {
        let wanted = match operation {
            "get" => "the bytes and their version, an integer from 0, or nothing",
            "put" => "the version of the value, an integer from 0, or \"conflict\"",
            _ => "the bytes, or nothing",
        };
        StoreReply::Failed(format!("{operation}() of the store must return {wanted}"))
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
