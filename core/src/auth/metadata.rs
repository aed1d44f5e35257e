//! The documents by which servers and clients find each other: of a protected resource (RFC 9728) and of an
//! authorization server (RFC 8414, `OpenID` Connect Discovery 1.0).

use serde::{Deserialize, Serialize};

use super::{
    fetch::{FetchError, FetchResponse, check_url},
    url::WebUrl,
};

/// The path below which the document of a protected resource is.
pub const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource";
const OAUTH_PATH: &str = "/.well-known/oauth-authorization-server";
const OPENID_PATH: &str = "/.well-known/openid-configuration";

/// Protected Resource Metadata (RFC 9728, section 2).
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ResourceMetadata {
    pub resource: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authorization_servers: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bearer_methods_supported: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dpop_signing_alg_values_supported: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

/// Authorization Server Metadata (RFC 8414, section 2), checked by [`ServerMetadata::read`].
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct ServerMetadata {
    pub issuer: String,
    pub authorization_endpoint: Option<String>,
    pub token_endpoint: Option<String>,
    pub registration_endpoint: Option<String>,
    pub jwks_uri: Option<String>,
    pub introspection_endpoint: Option<String>,
    pub revocation_endpoint: Option<String>,
    pub userinfo_endpoint: Option<String>,
    pub scopes_supported: Option<Vec<String>>,
    pub grant_types_supported: Option<Vec<String>>,
    pub code_challenge_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub token_endpoint_auth_signing_alg_values_supported: Option<Vec<String>>,
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
    pub authorization_response_iss_parameter_supported: bool,
    pub client_id_metadata_document_supported: bool,
}

impl ResourceMetadata {
    /// Reads the document for a client of the server at `url`. Errors if it is about another resource, or names an
    /// authorization server that may not be used.
    pub fn read(response: &FetchResponse, url: &str) -> Result<Self, FetchError> {
        let document: Self = response.document()?;
        if !document.covers(url) {
            return Err(FetchError::Url(format!(
                "the metadata is about the resource {:?}, not about {:?}",
                document.resource, url
            )));
        }
        for issuer in &document.authorization_servers {
            check_url(issuer)?;
        }
        Ok(document)
    }

    /// Returns whether the resource is the server at `url`: equal, or with the same origin and a path above the URL's.
    pub fn covers(&self, url: &str) -> bool {
        let (Ok(own), Ok(other)) = (WebUrl::parse(&self.resource), WebUrl::parse(url)) else {
            return false;
        };
        let (above, below) = (own.path().trim_end_matches('/'), other.path().trim_end_matches('/'));
        let is_below = |rest: &str| rest.is_empty() || rest.starts_with(['/', '?']);
        own.has_origin_of(&other) && below.strip_prefix(above).is_some_and(is_below)
    }
}

impl ServerMetadata {
    /// Reads the document of an issuer. Errors if the document names another issuer (RFC 8414, section 3.3), or an endpoint
    /// that may not be used.
    pub fn read(response: &FetchResponse, issuer: &str) -> Result<Self, FetchError> {
        let document: Self = response.document()?;
        if !is_same_issuer(&document.issuer, issuer) {
            return Err(FetchError::Url(format!(
                "the metadata is of the issuer {:?}, not of {issuer:?}",
                document.issuer
            )));
        }
        let endpoints = [
            &document.authorization_endpoint,
            &document.token_endpoint,
            &document.registration_endpoint,
            &document.jwks_uri,
            &document.introspection_endpoint,
            &document.revocation_endpoint,
            &document.userinfo_endpoint,
        ];
        for endpoint in endpoints.into_iter().flatten() {
            check_url(endpoint)?;
        }
        Ok(document)
    }
}

/// Returns the URLs at which the document of the server at `url` may be, in the order of the specification
/// ("Protected Resource Metadata Discovery Requirements").
pub fn resource_locations(url: &str) -> Vec<String> {
    let Some((origin, path)) = split(url) else { return Vec::new() };
    let (path, query) = path.split_at(path.find('?').unwrap_or(path.len()));
    let path = path.trim_end_matches('/');
    let root = format!("{origin}{RESOURCE_PATH}");
    match path.is_empty() && query.is_empty() {
        true => vec![root],
        false => vec![format!("{root}{path}{query}"), root],
    }
}

/// Returns the URLs at which the document of an issuer may be, in the order of the specification ("Authorization Server
/// Metadata Discovery").
pub fn issuer_locations(issuer: &str) -> Vec<String> {
    let Some((origin, path)) = split(issuer) else { return Vec::new() };
    let path = path.trim_end_matches('/');
    match path.is_empty() {
        true => vec![format!("{origin}{OAUTH_PATH}"), format!("{origin}{OPENID_PATH}")],
        false => vec![
            format!("{origin}{OAUTH_PATH}{path}"),
            format!("{origin}{OPENID_PATH}{path}"),
            format!("{origin}{path}{OPENID_PATH}"),
        ],
    }
}

/// Returns whether two URLs name one issuer. They are compared as plain strings (RFC 8414, section 3.3), but that a slash may
/// follow the host where there is no path: several authorization servers have it in some places only. The issuer in an
/// authorization response is compared without that (RFC 9207, section 2.4).
pub fn is_same_issuer(one: &str, other: &str) -> bool {
    fn without_slash(issuer: &str) -> &str {
        match split(issuer) {
            Some((origin, "/")) => origin,
            _ => issuer,
        }
    }
    without_slash(one) == without_slash(other)
}

/// Splits a URL into its origin and the rest. The text stays as it is: no case folding, no default port.
pub fn split(url: &str) -> Option<(&str, &str)> {
    let authority = url.find("://")? + 3;
    let rest = &url[authority..];
    let end = authority + rest.find(['/', '?', '#']).unwrap_or(rest.len());
    (end > authority).then(|| url.split_at(end))
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, StatusCode};
    use serde_json::json;

    use super::*;

    fn answer(body: &serde_json::Value) -> FetchResponse {
        let (url, headers) = ("https://as.example.com/x".into(), HeaderMap::new());
        FetchResponse { url, status: StatusCode::OK, headers, body: body.to_string().into() }
    }

    #[test]
    fn an_issuer_without_a_path_may_end_with_a_slash() {
        for (one, other, is_same) in [
            ("https://as.example.com", "https://as.example.com", true),
            ("https://as.example.com", "https://as.example.com/", true),
            ("https://as.example.com/", "https://as.example.com", true),
            ("https://as.example.com", "https://as.example.com//", false),
            ("https://as.example.com/a", "https://as.example.com/a/", false),
            ("https://as.example.com", "https://as.example.com/?", false),
            ("https://as.example.com", "https://as.example.com.evil.example/", false),
            ("https://as.example.com", "http://as.example.com", false),
            ("https://as.example.com", "https://AS.example.com", false),
            ("", "/", false),
        ] {
            assert_eq!(is_same_issuer(one, other), is_same, "{one} {other}");
        }
    }

    #[test]
    fn an_issuer_is_looked_for_in_the_order_of_the_specification() {
        assert_eq!(
            issuer_locations("https://auth.example.com/tenant1"),
            [
                "https://auth.example.com/.well-known/oauth-authorization-server/tenant1",
                "https://auth.example.com/.well-known/openid-configuration/tenant1",
                "https://auth.example.com/tenant1/.well-known/openid-configuration",
            ]
        );
        for issuer in ["https://auth.example.com", "https://auth.example.com/"] {
            assert_eq!(
                issuer_locations(issuer),
                [
                    "https://auth.example.com/.well-known/oauth-authorization-server",
                    "https://auth.example.com/.well-known/openid-configuration",
                ]
            );
        }
        assert!(issuer_locations("auth.example.com").is_empty());
    }

    #[test]
    fn a_resource_is_looked_for_at_its_path_and_then_at_the_root() {
        assert_eq!(
            resource_locations("https://example.com/public/mcp"),
            [
                "https://example.com/.well-known/oauth-protected-resource/public/mcp",
                "https://example.com/.well-known/oauth-protected-resource",
            ]
        );
        let root = ["https://example.com/.well-known/oauth-protected-resource"];
        assert_eq!(resource_locations("https://example.com"), root);
        assert_eq!(resource_locations("https://example.com/"), root);
    }

    #[test]
    fn the_metadata_of_another_issuer_is_refused() {
        let document = json!({
            "issuer": "https://as.example.com", "token_endpoint": "https://as.example.com/token", "more": 1,
        });
        let found = ServerMetadata::read(&answer(&document), "https://as.example.com").unwrap();
        assert_eq!(found.token_endpoint.as_deref(), Some("https://as.example.com/token"));
        assert!(ServerMetadata::read(&answer(&document), "https://as.example.com/").is_ok());
        for other in ["https://as.example.com/a", "https://AS.example.com", "https://evil.example"]
        {
            let error = ServerMetadata::read(&answer(&document), other).unwrap_err().to_string();
            assert!(error.contains("not of"), "{error}");
        }
        assert!(ServerMetadata::read(&answer(&json!({})), "https://as.example.com").is_err());
    }

    #[test]
    fn endpoints_need_https() {
        for name in
            ["authorization_endpoint", "token_endpoint", "jwks_uri", "registration_endpoint"]
        {
            let document =
                json!({ "issuer": "https://as.example.com", name: "http://as.example.com/x" });
            let error = ServerMetadata::read(&answer(&document), "https://as.example.com");
            assert!(error.unwrap_err().to_string().contains("use https"));
        }
    }

    #[test]
    fn a_document_covers_its_resource_and_what_is_below() {
        let covers = |resource: &str, url: &str| {
            let resource = resource.to_owned();
            ResourceMetadata { resource, ..ResourceMetadata::default() }.covers(url)
        };
        assert!(covers("https://example.com/mcp", "https://example.com/mcp"));
        assert!(covers("https://example.com/mcp/", "https://example.com/mcp"));
        assert!(covers("https://example.com", "https://example.com/mcp"));
        assert!(covers("https://Example.com", "https://example.com/mcp?x=1"));
        assert!(!covers("https://example.com/mc", "https://example.com/mcp"));
        assert!(!covers("https://example.com/mcp", "https://example.com/other"));
        assert!(!covers("https://evil.example/mcp", "https://example.com/mcp"));
        assert!(!covers("https://example.com:444/mcp", "https://example.com/mcp"));
        assert!(!covers("https://example.com/mcp#x", "https://example.com/mcp"));
        assert!(!covers("", "https://example.com/mcp"));
    }
}
