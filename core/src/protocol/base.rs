//! What every message's params and result are made of.

use std::fmt;

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

use super::Raw;

/// The params of a request that has none of its own: `ping`, `server/discover`, `roots/list` (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RequestParams {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The params of a notification that has none of its own: `notifications/initialized`, every `list_changed`
/// (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct NotificationParams {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A result that says no more than that the request was done (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Whether a result is the answer or asks for more first (spec: Multi Round-Trip Requests).
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ResultType {
    #[default]
    Complete,
    InputRequired,
    /// What an extension defines, `task` for one.
    Other(String),
}

/// Who speaks in a conversation, or is spoken to (spec: Common Types).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    User,
    Assistant,
}

/// The members of an object whose names the users choose, in the order they were given (spec: JSON Types).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Members<T>(pub Vec<(String, T)>);

impl ResultType {
    pub fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Other(name) => name,
        }
    }
}

impl From<String> for ResultType {
    fn from(name: String) -> Self {
        match &*name {
            "complete" => Self::Complete,
            "input_required" => Self::InputRequired,
            _ => Self::Other(name),
        }
    }
}

impl From<ResultType> for String {
    fn from(result_type: ResultType) -> Self {
        match result_type {
            ResultType::Other(name) => name,
            known => known.as_str().to_owned(),
        }
    }
}

impl<T> Members<T> {
    /// The member with this name; of several the last counts.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &T)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl<T> Default for Members<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<K: Into<String>, T> FromIterator<(K, T)> for Members<T> {
    fn from_iter<I: IntoIterator<Item = (K, T)>>(members: I) -> Self {
        Self(members.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

impl<T: Serialize> Serialize for Members<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Members<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor<T>(std::marker::PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for MembersVisitor<T> {
            type Value = Members<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(MembersVisitor(std::marker::PhantomData))
    }
}

/// For members where `null` is a value, not an absence.
pub(super) fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}
