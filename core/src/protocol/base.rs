//! Types shared by the params and results of all messages.

use std::{fmt, ops::Deref};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{MapAccess, Visitor},
};

use super::Raw;
use crate::error::impl_names;

/// Params of a request that defines none of its own: `ping`, `server/discover`, `roots/list` (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct RequestParams {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// Params of a notification that defines none of its own: `notifications/initialized`, every `list_changed` (spec:
/// Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct NotificationParams {
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// A result without members of its own: it only confirms that the request was carried out (spec: Common Types).
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmptyResult {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_type: Option<ResultType>,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Raw>,
}

/// The type of a result: the final answer, or a request for more input (spec: Multi Round-Trip Requests).
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum ResultType {
    #[default]
    Complete,
    InputRequired,
    /// A result type that an extension defines, such as `task`.
    Other(String),
}

/// The sender or the recipient of a message in a conversation (spec: Common Types).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub enum Role {
    User,
    Assistant,
}

/// The members of an object with user-defined names, in their original order (spec: JSON Types).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Members<T>(pub Vec<(String, T)>);

impl ResultType {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Complete => "complete",
            Self::InputRequired => "input_required",
            Self::Other(name) => name,
        }
    }
}

impl_names!(ResultType);

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
    /// Returns the member with this name; the last one if there are several.
    pub fn get(&self, name: &str) -> Option<&T> {
        self.0.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

impl<T> Deref for Members<T> {
    type Target = [(String, T)];

    fn deref(&self) -> &[(String, T)] {
        &self.0
    }
}

impl<T> IntoIterator for Members<T> {
    type Item = (String, T);
    type IntoIter = std::vec::IntoIter<(String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a, T> IntoIterator for &'a Members<T> {
    type Item = &'a (String, T);
    type IntoIter = std::slice::Iter<'a, (String, T)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
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

/// Deserializes members for which `null` is a value rather than an absence.
pub(super) fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}
