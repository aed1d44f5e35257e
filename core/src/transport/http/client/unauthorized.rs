//! The hint for a response with status 401: which credentials to pass, and how.

use http::{HeaderMap, header};

use crate::error::Language;

/// The credentials of the request that the server answered with 401.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Credentials {
    /// The client has some.
    Given,
    /// None, and the client can sign in, because the server is at an `http` or `https` URL.
    None,
    /// None, and only a header can have them: over WebSocket.
    NoHeader,
}

impl Credentials {
    /// Returns the credentials of a request with these headers; `otherwise` if they have none.
    pub(crate) fn from_headers(headers: &HeaderMap, otherwise: Self) -> Self {
        if headers.contains_key(header::AUTHORIZATION) { Self::Given } else { otherwise }
    }

    /// Returns the way to pass credentials that the server accepts, in the notation of the language.
    pub(super) fn hint(self, language: Language) -> &'static str {
        match (self, language) {
            (Self::Given, _) => "check that the token is for this server and has not expired",
            (Self::None, Language::Rust) => {
                "set the option auth: Auth::Token(token.into()), or OAuth::default().into() to sign in with a browser"
            }
            (Self::None, Language::Python) => {
                "pass auth=\"TOKEN\", or auth=\"oauth\" to sign in with a browser"
            }
            (Self::None, Language::TypeScript) => {
                "pass { auth: \"TOKEN\" }, or { auth: \"oauth\" } to sign in with a browser"
            }
            (Self::NoHeader, Language::Rust) => {
                "add (\"Authorization\", \"Bearer TOKEN\") to the option headers"
            }
            (Self::NoHeader, Language::Python) => {
                "pass headers={\"Authorization\": \"Bearer TOKEN\"}"
            }
            (Self::NoHeader, Language::TypeScript) => {
                "pass { headers: { Authorization: \"Bearer TOKEN\" } }"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_fits_the_request_and_the_language() {
        for language in [Language::Rust, Language::Python, Language::TypeScript] {
            let hint = Credentials::Given.hint(language);
            assert!(hint.contains("expired") && !hint.contains("pass"), "{hint}");
            assert!(Credentials::None.hint(language).contains("auth"));
            assert!(Credentials::NoHeader.hint(language).contains("Bearer TOKEN"));
        }
        assert!(Credentials::None.hint(Language::Python).contains("auth=\"oauth\""));
        assert!(Credentials::None.hint(Language::TypeScript).contains("{ auth: \"oauth\" }"));
    }

    #[test]
    fn a_header_is_a_credential() {
        let mut headers = HeaderMap::new();
        assert_eq!(Credentials::from_headers(&headers, Credentials::None), Credentials::None);
        headers.insert(header::AUTHORIZATION, header::HeaderValue::from_static("Bearer a"));
        assert_eq!(Credentials::from_headers(&headers, Credentials::None), Credentials::Given);
    }
}
