//! Opaque tokens, which their issuer is asked about (RFC 7662).

use std::time::Duration;

use http::StatusCode;
use serde_json::{Map, Value};

use super::jwt::{self, VerifiedToken};
use crate::auth::{
    Secret,
    fetch::{FetchError, FetchRequest, FetchResponse},
    metadata::is_same_issuer,
};

/// An introspection endpoint and the client that this server is there.
#[derive(Clone, Debug)]
pub struct Introspection {
    pub url: String,
    pub client_id: String,
    pub client_secret: Secret,
    /// The names of this resource, one of which `aud` has to contain. `None`: its identifier, if the answer has `aud`.
    pub audiences: Option<Vec<String>>,
    /// The scopes that every request needs.
    pub scopes: Vec<String>,
    /// The time that an answer is kept.
    pub cache: Duration,
    pub leeway: u64,
}

/// The reason why an answer makes no principal.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum IntrospectionError {
    Invalid(&'static str),
    /// The endpoint failed; the text is for the log.
    Failed(String),
}

impl Introspection {
    /// Returns the request about a token.
    pub fn request(&self, token: &str) -> Result<FetchRequest, FetchError> {
        let fields = [("token", token), ("token_type_hint", "access_token")];
        let request = FetchRequest::post_form(&self.url, &fields)?;
        Ok(request.with_basic(&self.client_id, self.client_secret.expose()))
    }

    /// Reads the answer. `issuer` is the configured one, which owners are of; `unix` is the time, in seconds since 1970.
    pub fn read(
        &self,
        answer: Result<FetchResponse, FetchError>,
        audiences: &[String],
        issuer: Option<&str>,
        unix: u64,
    ) -> Result<VerifiedToken, IntrospectionError> {
        use IntrospectionError::{Failed, Invalid};
        let answer = answer.map_err(|error| Failed(format!("{}: {error}", self.url)))?;
        if matches!(answer.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Err(Failed(format!(
                "{}: it does not accept the client id and secret of this server",
                self.url
            )));
        }
        let mut claims: Map<String, Value> =
            answer.document().map_err(|error| Failed(format!("{}: {error}", self.url)))?;
        // Anything but `true` is not active: a string "true" included.
        if claims.get("active") != Some(&Value::Bool(true)) {
            return Err(Invalid("the token is not active"));
        }
        jwt::check_times(&claims, unix, self.leeway, false).map_err(Invalid)?;
        if self.audiences.is_some() || claims.get("aud").is_some_and(|audience| !audience.is_null())
        {
            jwt::check_audience(&claims, audiences).map_err(Invalid)?;
        }
        if let Some(issuer) = issuer {
            match claims.get("iss") {
                // Another issuer may have an owner of the same name.
                None | Some(Value::Null) => drop(claims.insert("iss".into(), issuer.into())),
                Some(Value::String(named)) if is_same_issuer(named, issuer) => (),
                Some(_) => return Err(Invalid("the token is of another issuer")),
            }
        }
        jwt::verified(claims, self.leeway).map_err(Invalid)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use http::HeaderMap;
    use serde_json::json;

    use super::*;

    fn introspection() -> Introspection {
        Introspection {
            url: "https://as.example.com/introspect".into(),
            client_id: "server".into(),
            client_secret: "s3cret".into(),
            audiences: None,
            scopes: Vec::new(),
            cache: Duration::from_secs(60),
            leeway: 60,
        }
    }

    fn read(status: u16, body: &Value) -> Result<VerifiedToken, IntrospectionError> {
        read_as(&introspection(), None, status, body)
    }

    fn read_as(
        introspection: &Introspection,
        issuer: Option<&str>,
        status: u16,
        body: &Value,
    ) -> Result<VerifiedToken, IntrospectionError> {
        let (status, headers) = (StatusCode::from_u16(status).unwrap(), HeaderMap::new());
        let (url, body) = (String::new(), body.to_string().into());
        let answer = FetchResponse { url, status, headers, body };
        introspection.read(Ok(answer), &["https://mcp.example.com/mcp".into()], issuer, 1_000)
    }

    #[test]
    fn a_configured_audience_is_required() {
        let own = "https://mcp.example.com/mcp";
        let configured = Introspection { audiences: Some(vec![own.into()]), ..introspection() };
        let without = json!({ "active": true, "sub": "ada" });
        for answer in [&without, &json!({ "active": true, "sub": "ada", "aud": null })] {
            let refused = read_as(&configured, None, 200, answer);
            assert!(
                matches!(refused, Err(IntrospectionError::Invalid(it)) if it.contains("audience"))
            );
            assert!(read(200, answer).is_ok());
        }
        let named = json!({ "active": true, "sub": "ada", "aud": own });
        assert!(read_as(&configured, None, 200, &named).is_ok());
    }

    #[test]
    fn owners_are_of_the_configured_issuer() {
        let issuer = Some("https://as.example.com");
        let read = |iss: Value| {
            let answer = json!({ "active": true, "sub": "ada", "iss": iss });
            read_as(&introspection(), issuer, 200, &answer)
        };
        for iss in [Value::Null, json!("https://as.example.com")] {
            assert_eq!(read(iss).unwrap().principal.claims["iss"], "https://as.example.com");
        }
        for iss in [json!("https://evil.example"), json!(["https://as.example.com"])] {
            assert!(
                matches!(read(iss), Err(IntrospectionError::Invalid(it)) if it.contains("issuer"))
            );
        }
    }

    #[test]
    fn an_active_token_has_an_owner() {
        let token = read(
            200,
            &json!({ "active": true, "sub": "ada", "client_id": "c", "scope": "a b",
            "exp": 2_000, "aud": ["x", "https://mcp.example.com/mcp"] }),
        );
        let token = token.unwrap();
        assert_eq!((token.principal.subject.as_str(), token.expires), ("ada", Some(2_060)));
        assert_eq!(token.principal.client_id.as_deref(), Some("c"));
        assert_eq!(token.principal.scopes.len(), 2);
        let request = introspection().request("t&t").unwrap();
        assert_eq!(request.body, b"token=t%26t&token_type_hint=access_token");
        assert!(!format!("{:?} {request:?}", introspection()).contains("s3cret"));
    }

    #[test]
    fn anything_else_is_refused() {
        for (answer, reason) in [
            (json!({ "active": false, "sub": "ada" }), "not active"),
            (json!({ "active": "true", "sub": "ada" }), "not active"),
            (json!({}), "not active"),
            (json!({ "active": true, "sub": "ada", "exp": 900 }), "expired"),
            (json!({ "active": true, "sub": "ada", "exp": "soon" }), "not a number"),
            (json!({ "active": true, "sub": "ada", "nbf": 1_100 }), "not valid yet"),
            (json!({ "active": true, "sub": "ada", "aud": "https://other.example" }), "audience"),
            (json!({ "active": true }), "no subject"),
            (json!({ "active": true, "sub": "ada", "cnf": { "x5t#S256": "x" } }), "bound"),
        ] {
            let Err(IntrospectionError::Invalid(error)) = read(200, &answer) else {
                panic!("{answer}")
            };
            assert!(error.contains(reason), "{error}");
        }
        for (status, body) in
            [(401, json!({})), (500, json!({})), (302, json!({})), (200, json!([]))]
        {
            let answer = read(status, &body);
            assert!(matches!(answer, Err(IntrospectionError::Failed(_))), "{status}");
        }
    }
}
