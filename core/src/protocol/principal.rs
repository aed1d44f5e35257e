//! Who asks, as far as whoever let the request in knows.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Somebody who was authenticated: a user, or a program on its own behalf (Authorization).
///
/// Two are the same where everything about them is the same, claims included: what was made for one is never shown to
/// another.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Principal {
    /// Who it is, to whoever named it.
    pub subject: String,
    /// The program that acts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// What it may do.
    #[serde(default)]
    pub scopes: BTreeSet<String>,
    /// What else was said of it, as in a token.
    #[serde(default)]
    pub claims: Map<String, Value>,
}

impl Principal {
    /// Somebody of whom nothing else is known.
    pub fn new(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), ..Self::default() }
    }

    /// Tells it from all others, and stays the same when its token is renewed.
    pub fn identity(&self) -> String {
        serde_json::json!([self.claims.get("iss"), self.subject, self.client_id]).to_string()
    }
}
