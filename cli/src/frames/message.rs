//! The parts of a JSON-RPC message that are needed to pass it on. All others keep their spelling.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
    ser::SerializeMap,
};
use serde_json::value::{RawValue, to_raw_value};

/// A JSON object whose members are unparsed.
#[derive(Clone, Debug, Default)]
pub struct RawObject(Vec<(String, Box<RawValue>)>);

/// The kind of a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Kind {
    /// The id is its JSON text.
    Request {
        id: String,
        method: String,
    },
    Response {
        id: String,
    },
    Notification {
        method: String,
    },
    /// No message of JSON-RPC, or a batch.
    Other,
}

impl RawObject {
    pub fn parse(json: &[u8]) -> Option<Self> {
        serde_json::from_slice(json).ok()
    }

    pub fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.iter().find(|member| member.0 == name).map(|member| &*member.1)
    }

    /// Returns a member that is an object.
    pub fn object(&self, name: &str) -> Option<Self> {
        Self::parse(self.get(name)?.get().as_bytes())
    }

    /// Returns a member that is a string.
    pub fn string(&self, name: &str) -> Option<String> {
        serde_json::from_str(self.get(name)?.get()).ok()
    }

    /// Replaces or adds a member.
    pub fn set(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        // A value of ours that can't be serialized does not exist.
        let Ok(value) = to_raw_value(value) else { return };
        match self.0.iter_mut().find(|member| member.0 == name) {
            Some(member) => member.1 = value,
            None => self.0.push((name.to_owned(), value)),
        }
    }

    /// Replaces or adds a member, given as JSON text.
    pub fn set_json(&mut self, name: &str, json: &str) {
        if let Ok(value) = serde_json::from_str::<&RawValue>(json) {
            self.set(name, value);
        }
    }

    pub fn into_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
    }

    /// Returns the kind of the message that this object is.
    pub fn kind(&self) -> Kind {
        let id = self.get("id").map(|id| id.get().to_owned());
        match (id, self.string("method")) {
            (Some(id), Some(method)) => Kind::Request { id, method },
            (Some(id), None) => Kind::Response { id },
            (None, Some(method)) => Kind::Notification { method },
            (None, None) => Kind::Other,
        }
    }

    /// Returns a member of `params._meta` as JSON text.
    pub fn meta(&self, name: &str) -> Option<String> {
        let meta = self.object("params")?.object("_meta")?;
        Some(meta.get(name)?.get().to_owned())
    }

    /// Replaces a member of `params._meta`, given as JSON text.
    pub fn set_meta(&mut self, name: &str, json: &str) {
        let mut params = self.object("params").unwrap_or_default();
        let mut meta = params.object("_meta").unwrap_or_default();
        meta.set_json(name, json);
        params.set("_meta", &meta);
        self.set("params", &params);
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(RawObject(members))
            }
        }
        deserializer.deserialize_map(Members)
    }
}

/// Returns an error response; `id` is JSON text.
pub fn error(id: &str, code: i64, message: &str) -> Vec<u8> {
    let mut response = RawObject::default();
    response.set("jsonrpc", "2.0");
    response.set_json("id", id);
    response.set("error", &serde_json::json!({ "code": code, "message": message }));
    response.into_bytes()
}

/// Returns a notification.
pub fn notification(method: &str, params: &serde_json::Value) -> Vec<u8> {
    let mut notification = RawObject::default();
    notification.set("jsonrpc", "2.0");
    notification.set("method", method);
    if !params.is_null() {
        notification.set("params", params);
    }
    notification.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(json: &str) -> RawObject {
        RawObject::parse(json.as_bytes()).unwrap_or_default()
    }

    #[test]
    fn members_that_are_not_replaced_keep_their_spelling() {
        let mut message = parse(r#"{"id":1,"method":"a","params":{"n":1.50,"_meta":{"x":1e2}}}"#);
        message.set_json("id", "\"7\"");
        message.set_meta("progressToken", "7");
        let text = String::from_utf8(message.into_bytes());
        let expected =
            r#"{"id":"7","method":"a","params":{"n":1.50,"_meta":{"x":1e2,"progressToken":7}}}"#;
        assert_eq!(text.as_deref(), Ok(expected));
    }

    #[test]
    fn messages_have_their_kind() {
        let request = Kind::Request { id: "1".into(), method: "a".into() };
        assert_eq!(parse(r#"{"id":1,"method":"a"}"#).kind(), request);
        assert_eq!(
            parse(r#"{"id":"x","result":{}}"#).kind(),
            Kind::Response { id: "\"x\"".into() }
        );
        assert_eq!(parse(r#"{"method":"a"}"#).kind(), Kind::Notification { method: "a".into() });
        assert_eq!(parse("[]").kind(), Kind::Other);
    }
}
