//! Discovery of an authorization server (RFC 8414), in the order of the specification.

use crate::auth::{
    fetch::{FetchError, FetchRequest, FetchResponse, MAX_DOCUMENT},
    metadata::{ServerMetadata, issuer_locations},
};

/// One search for the metadata of an issuer. It ends with the first document that is found.
#[derive(Clone, Debug)]
pub struct Discovery {
    issuer: String,
    /// The locations that are left, the next one last.
    left: Vec<String>,
    failures: Vec<String>,
}

/// The result of one answer.
#[derive(Debug)]
pub enum Discovered {
    /// The next location is to be asked.
    Continue,
    Found(Box<ServerMetadata>),
    /// No location has the metadata; the text says what happened at each.
    Failed(String),
}

impl Discovery {
    pub fn new(issuer: &str) -> Self {
        let mut left = issuer_locations(issuer);
        left.reverse();
        Self { issuer: issuer.to_owned(), left, failures: Vec::new() }
    }

    /// Returns the request for the next location.
    pub fn request(&self) -> Result<FetchRequest, FetchError> {
        let url = self.left.last().ok_or_else(|| {
            FetchError::Url(format!("{:?} is not the URL of an issuer", self.issuer))
        })?;
        FetchRequest::get(url, MAX_DOCUMENT)
    }

    /// Handles the answer to the request.
    pub fn answered(&mut self, answer: Result<&FetchResponse, FetchError>) -> Discovered {
        let url = self.left.pop().unwrap_or_default();
        let failure = match answer.and_then(|answer| ServerMetadata::read(answer, &self.issuer)) {
            Ok(metadata) => return Discovered::Found(Box::new(metadata)),
            Err(failure) => failure,
        };
        self.failures.push(format!("{url}: {failure}"));
        match self.left.is_empty() {
            true => Discovered::Failed(self.failures.join("; ")),
            false => Discovered::Continue,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use http::{HeaderMap, StatusCode};

    use super::*;

    fn answer(status: u16, body: &str) -> FetchResponse {
        let (url, headers) = (String::new(), HeaderMap::new());
        FetchResponse {
            url,
            status: StatusCode::from_u16(status).unwrap(),
            headers,
            body: body.into(),
        }
    }

    #[test]
    fn the_locations_are_asked_in_turn() {
        let mut discovery = Discovery::new("https://as.example.com/tenant");
        let asked = |discovery: &Discovery| discovery.request().unwrap().url;
        assert!(asked(&discovery).ends_with("/.well-known/oauth-authorization-server/tenant"));
        let next = discovery.answered(Ok(&answer(404, "")));
        assert!(matches!(next, Discovered::Continue));
        assert!(asked(&discovery).ends_with("/.well-known/openid-configuration/tenant"));
        // The metadata of somebody else is not used (RFC 8414, section 3.3).
        let next = discovery.answered(Ok(&answer(200, r#"{"issuer":"https://evil.example"}"#)));
        assert!(matches!(next, Discovered::Continue));
        assert!(asked(&discovery).ends_with("/tenant/.well-known/openid-configuration"));
        let mut found = discovery.clone();
        let own = answer(200, r#"{"issuer":"https://as.example.com/tenant"}"#);
        assert!(matches!(found.answered(Ok(&own)), Discovered::Found(_)));
        let Discovered::Failed(reason) = discovery.answered(Err(FetchError::TooLarge(7))) else {
            panic!("nothing is left")
        };
        assert!(reason.contains("status 404") && reason.contains("longer than 7"), "{reason}");
        assert!(reason.contains("https://evil.example"), "{reason}");
        assert!(discovery.request().is_err());
    }

    #[test]
    fn an_issuer_needs_https() {
        assert!(Discovery::new("http://as.example.com").request().is_err());
        assert!(Discovery::new("as.example.com").request().is_err());
    }
}
