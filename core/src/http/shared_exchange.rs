//! HTTP requests and answers as they are sent between processes.

use std::{net::IpAddr, sync::Arc};

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::{Deserialize, Serialize};

use super::{HttpFacts, Part};
use crate::protocol::Principal;

/// A stateless request.
#[derive(Debug, Deserialize, Serialize)]
pub(super) struct SharedRequest {
    headers: Vec<(String, String)>,
    principal: Option<Principal>,
    remote: Option<IpAddr>,
    body: String,
}

/// A part of an answer.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum SharedPart {
    Head { status: u16, headers: Vec<(String, String)>, body: String, more: bool },
    Bytes(String),
    End,
}

impl SharedRequest {
    pub(super) fn new(facts: &HttpFacts, body: String) -> Self {
        Self {
            headers: write(&facts.headers),
            principal: facts.principal.as_deref().cloned(),
            remote: facts.remote,
            body,
        }
    }

    /// Returns the facts of the request and its body.
    pub(super) fn open(self) -> Option<(HttpFacts, String)> {
        let facts = HttpFacts {
            headers: read(&self.headers)?,
            session_id: None,
            remote: self.remote,
            principal: self.principal.map(Arc::new),
            // The handler runs in a span of its own process.
            ambient: None,
        };
        Some((facts, self.body))
    }
}

impl SharedPart {
    /// Every answer is UTF-8, because it is JSON or a stream of events.
    pub(super) fn new(part: Part) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match part {
            Part::Head { status, headers, body, more } => Self::Head {
                status: status.as_u16(),
                headers: write(&headers),
                body: text(&body),
                more,
            },
            Part::Bytes(bytes) => Self::Bytes(text(&bytes)),
            Part::End => Self::End,
        }
    }

    pub(super) fn open(self) -> Option<Part> {
        Some(match self {
            Self::Head { status, headers, body, more } => Part::Head {
                status: StatusCode::from_u16(status).ok()?,
                headers: read(&headers)?,
                body: body.into_bytes(),
                more,
            },
            Self::Bytes(bytes) => Part::Bytes(bytes.into_bytes()),
            Self::End => Part::End,
        })
    }
}

/// Header values are bytes; those that are not UTF-8 have no meaning for MCP, and are left out.
fn write(headers: &HeaderMap) -> Vec<(String, String)> {
    let written = headers.iter().filter_map(|(name, value)| {
        let value = std::str::from_utf8(value.as_bytes()).ok()?;
        Some((name.as_str().to_owned(), value.to_owned()))
    });
    written.collect()
}

fn read(headers: &[(String, String)]) -> Option<HeaderMap> {
    let mut read = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
        read.append(name, HeaderValue::from_str(value).ok()?);
    }
    Some(read)
}
