//! The credentials in the head of a request.

use http::{HeaderMap, HeaderName, header};

use super::jwt::MAX_TOKEN;

/// The scheme of an access token.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Scheme {
    Bearer,
    DPoP,
}

/// The credentials of a request, or what is wrong with them.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Credentials<'a> {
    /// There are none, or of a scheme that means nothing here.
    Missing,
    /// The request is malformed: 400.
    Malformed(&'static str),
    TooLong,
    Token(Scheme, &'a str),
}

/// Reads the access token of a request. Tokens in the query or the body are never read (2026-07-28, "Token
/// Requirements").
pub(super) fn token(headers: &HeaderMap) -> Credentials<'_> {
    let value = match only(headers, &header::AUTHORIZATION) {
        Ok(Some(value)) => value,
        Ok(None) => return Credentials::Missing,
        Err(reason) => return Credentials::Malformed(reason),
    };
    let (scheme, token) = value.split_once(' ').unwrap_or((value, ""));
    let scheme = match scheme {
        _ if scheme.eq_ignore_ascii_case("bearer") => Scheme::Bearer,
        _ if scheme.eq_ignore_ascii_case("dpop") => Scheme::DPoP,
        _ => return Credentials::Missing,
    };
    let token = token.trim_ascii();
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
    match token {
        _ if token.len() > MAX_TOKEN => Credentials::TooLong,
        _ if token.is_empty() || !token.bytes().all(is_allowed) => {
            Credentials::Malformed("the Authorization header has no readable token")
        }
        _ => Credentials::Token(scheme, token),
    }
}

/// Returns the value of a header that may come once.
pub(super) fn only<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'a str>, &'static str> {
    let mut values = headers.get_all(name).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err("the request has credentials more than once");
    }
    value.to_str().map(|text| Some(text.trim_ascii())).map_err(|_| "the credentials are unreadable")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use http::HeaderValue;

    use super::*;

    fn headers(values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(header::AUTHORIZATION, HeaderValue::try_from(*value).unwrap());
        }
        headers
    }

    #[test]
    fn a_token_comes_once_and_in_the_header() {
        assert_eq!(
            token(&headers(&["Bearer a.b~c+/=="])),
            Credentials::Token(Scheme::Bearer, "a.b~c+/==")
        );
        assert_eq!(token(&headers(&["bearer  a "])), Credentials::Token(Scheme::Bearer, "a"));
        assert_eq!(token(&headers(&["DPOP a"])), Credentials::Token(Scheme::DPoP, "a"));
        assert_eq!(token(&headers(&[])), Credentials::Missing);
        assert_eq!(token(&headers(&["Basic YTpi"])), Credentials::Missing);
        for malformed in [
            &["Bearer a", "Bearer a"][..],
            &["Bearer a", "Basic b"],
            &["Bearer"],
            &["Bearer "],
            &["Bearer a b"],
            &["Bearer a,b"],
            &["Bearer \"a\""],
            &["Bearer é"],
        ] {
            let found = headers(malformed);
            assert!(matches!(token(&found), Credentials::Malformed(_)), "{malformed:?}");
        }
        let long = headers(&[&format!("Bearer {}", "x".repeat(MAX_TOKEN + 1))]);
        assert_eq!(token(&long), Credentials::TooLong);
    }
}
