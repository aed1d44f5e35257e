//! The authenticated identity behind a request.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::{Map, Value};

/// An authenticated user, or a program that acts on its own behalf (Authorization).
///
/// Two principals are equal if all their fields are equal, claims included. A value cached or stored for one
/// principal is never shown to another.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Principal {
    /// The subject's id, as its issuer names it. A caller with an empty one is refused.
    #[serde(deserialize_with = "not_empty")]
    pub subject: String,
    /// The id of the client program that acts for the subject.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// The granted scopes.
    #[serde(default)]
    pub scopes: BTreeSet<String>,
    /// Further claims, such as those of a token.
    #[serde(default)]
    pub claims: Map<String, Value>,
}

impl Principal {
    /// Creates a principal with this subject and nothing else.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    /// Returns a string that identifies the principal (issuer, subject and client id). It does not change when a
    /// token is renewed.
    #[doc(hidden)] // For the language bindings and the tests.
    pub fn identity(&self) -> String {
        serde_json::json!([self.claims.get("iss"), self.subject, self.client_id]).to_string()
    }
}

/// Reads a subject. Errors if it is empty: all callers without a name would be one principal.
fn not_empty<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let subject = String::deserialize(deserializer)?;
    match subject.is_empty() {
        true => Err(D::Error::custom("its subject is empty")),
        false => Ok(subject),
    }
}
