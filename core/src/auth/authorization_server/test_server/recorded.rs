//! The record of what an authorization server was asked, without secrets.

use std::collections::VecDeque;

use http::header;
use serde_json::{Value, json};

use super::super::message::{Form, OAuthError, Request, Response};

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

/// The last requests.
#[derive(Debug, Default)]
pub(super) struct Recorded(VecDeque<Value>);

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
        self.0.push_back(json!({
            "method": request.method.as_str(),
            "path": shortened(&request.path),
            "form": form,
            "status": response.status.as_u16(),
        }));
    }

    pub(super) fn all(&self) -> Value {
        self.0.iter().cloned().collect()
    }
}

fn fields(form: Result<Form, OAuthError>) -> Value {
    let mut fields = json!({});
    for (name, value) in form.map(Form::into_fields).unwrap_or_default() {
        let value = if SECRETS.contains(&name.as_str()) { "…" } else { &value };
        fields[shortened(&name)] = shortened(value).into();
    }
    fields
}

/// Returns the members of a registration request, those that are no strings as JSON.
fn json_fields(request: &Request) -> Value {
    let mut fields = json!({});
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    for (name, value) in body.as_object().into_iter().flatten() {
        let value = match value {
            _ if SECRETS.contains(&name.as_str()) => "…".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        fields[shortened(name)] = shortened(&value).into();
    }
    fields
}

fn shortened(text: &str) -> String {
    text.chars().take(MAX_VALUE).collect()
}
