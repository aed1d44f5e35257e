//! The record of what an authorization server was asked, without secrets.

use std::collections::{BTreeMap, VecDeque};

use http::header;
use serde::Serialize;
use serde_json::Value;

use super::{
    super::message::{Form, OAuthError, Request, Response},
    given::sorted,
};
use crate::protocol::json;

/// The maximum number of requests that are kept.
const MAX_REQUESTS: usize = 10_000;
/// The maximum length of a recorded value, in characters.
const MAX_VALUE: usize = 2_048;
/// Fields whose values are secrets.
const SECRETS: [&str; 9] = [
    "assertion",
    "client_assertion",
    "client_secret",
    "code",
    "code_verifier",
    "password",
    "refresh_token",
    "subject_token",
    "token",
];

/// A request that an [`AuthorizationServer`](crate::testing::auth::AuthorizationServer) answered.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct AnsweredRequest {
    pub method: String,
    pub path: String,
    /// The fields of the query, form or JSON body. Secrets, codes and tokens are `…`.
    pub form: BTreeMap<String, String>,
    /// The status of the response.
    pub status: u16,
}

/// The last requests.
#[derive(Debug, Default)]
pub(super) struct Recorded(VecDeque<AnsweredRequest>);

impl Recorded {
    pub(super) fn add(&mut self, request: &Request, response: &Response) {
        let form = match request.headers.get(header::CONTENT_TYPE) {
            Some(kind) if kind.as_bytes().starts_with(b"application/json") => json_fields(request),
            Some(_) => fields(Form::of_body(request)),
            None => fields(Form::of_query(request)),
        };
        if self.0.len() >= MAX_REQUESTS {
            self.0.pop_front();
        }
        self.0.push_back(AnsweredRequest {
            method: request.method.to_string(),
            path: shortened(&request.path),
            form: sorted(form.into_iter().map(field)),
            status: response.status.as_u16(),
        });
    }

    pub(super) fn all(&self) -> Vec<AnsweredRequest> {
        self.0.iter().cloned().collect()
    }
}

fn field((name, value): (String, String)) -> (String, String) {
    let value = if SECRETS.contains(&name.as_str()) { "…" } else { &value };
    (shortened(&name), shortened(value))
}

fn fields(form: Result<Form, OAuthError>) -> Vec<(String, String)> {
    form.map(Form::into_fields).unwrap_or_default()
}

/// Returns the members of a registration request, those that are not strings as JSON.
fn json_fields(request: &Request) -> Vec<(String, String)> {
    let body: Value = json::from_bytes(&request.body).unwrap_or_default();
    let Value::Object(members) = body else { return Vec::new() };
    let text = |value| match value {
        Value::String(text) => text,
        other => other.to_string(),
    };
    members.into_iter().map(|(name, value)| (name, text(value))).collect()
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_VALUE).collect()
}
