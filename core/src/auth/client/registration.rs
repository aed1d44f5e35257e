//! The client's id: registered beforehand, a metadata document, or dynamic registration, in this order (spec: "Client
//! Registration").

use http::StatusCode;
use serde::Deserialize;
use serde_json::json;

use super::{failure, records::ClientRecord, settings::RegisteredClient, shown};
use crate::{
    auth::{
        Secret,
        fetch::{FetchError, FetchRequest, FetchResponse},
        metadata::{ServerMetadata, is_same_issuer},
        url::WebUrl,
    },
    error::{Error, option_name},
};

/// The way on if the server names another authorization server than the one that the credentials are for.
pub(super) const TRUST: &str = "if you trust it, pass its credentials, and its URL as the issuer";

/// The source of a client's id at an authorization server.
#[derive(Debug)]
pub(super) enum Registration<'a> {
    Given(&'a RegisteredClient),
    /// The URL of the client's metadata document.
    Document(&'a str),
    Dynamic,
}

impl<'a> Registration<'a> {
    /// Chooses the source. Errors if the authorization server supports none of those that the client has.
    pub(super) fn choose(
        client: Option<&'a RegisteredClient>,
        metadata_url: Option<&'a str>,
        server: &ServerMetadata,
    ) -> Result<Self, Error> {
        if let Some(client) = client {
            check_issuer(client.issuer.as_deref(), &server.issuer)?;
            return Ok(Self::Given(client));
        }
        match metadata_url {
            Some(url) if server.client_id_metadata_document_supported => {
                check_document_url(url)?;
                Ok(Self::Document(url))
            }
            _ if server.registration_endpoint.is_some() => Ok(Self::Dynamic),
            Some(_) => Err(failure(format!(
                "the authorization server {} supports neither client metadata documents nor dynamic registration",
                server.issuer
            ))
            .with_hint(register_client())),
            None => Err(failure(format!(
                "the authorization server {} has no dynamic registration",
                server.issuer
            ))
            .with_hint(match server.client_id_metadata_document_supported {
                true => format!("pass {}, or {}", option_name("client_metadata_url"), register_client()),
                false => register_client(),
            })),
        }
    }
}

/// Errors if the credentials are for another authorization server (spec: "Authorization Server Binding").
pub(super) fn check_issuer(own: Option<&str>, issuer: &str) -> Result<(), Error> {
    match own {
        Some(own) if !is_same_issuer(own, issuer) => Err(failure(format!(
            "the credentials are for {own}, but the server's authorization server is {issuer}; nothing was sent there"
        ))
        .with_hint(TRUST)),
        _ => Ok(()),
    }
}

/// Returns the hint to use a client that the authorization server knows.
fn register_client() -> String {
    format!("register a client there and pass its {}", option_name("client_id"))
}

/// Errors if a URL can't be a client's id (spec: "Client ID Metadata Documents").
fn check_document_url(url: &str) -> Result<(), Error> {
    match WebUrl::parse(url) {
        Ok(it) if it.scheme() == "https" && it.path().len() > 1 && it.path().starts_with('/') => {
            Ok(())
        }
        _ => Err(Error::misuse(format!(
            "{}: it must be an https URL with a path, such as https://example.com/client.json",
            option_name("client_metadata_url")
        ))),
    }
}

/// Returns the request for dynamic registration (RFC 7591).
pub(super) fn request(
    server: &ServerMetadata,
    name: &str,
    redirect_uri: &str,
) -> Result<FetchRequest, FetchError> {
    let endpoint = server.registration_endpoint.as_deref().unwrap_or_default();
    let body = json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        // The redirect URL is on this machine. Where it is missing, OpenID Connect assumes a web application.
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": requested_method(server),
    });
    FetchRequest::post_json(endpoint, &body)
}

/// Returns the method to register: a program on the user's machine can't keep a secret, so the others are second choice.
fn requested_method(server: &ServerMetadata) -> &'static str {
    let Some(supported) = &server.token_endpoint_auth_methods_supported else { return "none" };
    let mut methods = ["none", "client_secret_basic", "client_secret_post"].into_iter();
    methods.find(|method| supported.iter().any(|own| own == method)).unwrap_or("none")
}

/// Reads the response to a registration.
pub(super) fn read(
    response: &FetchResponse,
    server: &ServerMetadata,
    redirect_uri: &str,
) -> Result<ClientRecord, Error> {
    #[derive(Deserialize)]
    struct Registered {
        client_id: String,
        client_secret: Option<Secret>,
        client_secret_expires_at: Option<u64>,
        token_endpoint_auth_method: Option<String>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct RegistrationRefusal {
        error: String,
        error_description: String,
    }
    let issuer = &server.issuer;
    if !matches!(response.status, StatusCode::OK | StatusCode::CREATED) {
        let refusal: RegistrationRefusal = response.json().unwrap_or_default();
        let words = [refusal.error, refusal.error_description];
        let words: Vec<_> =
            words.iter().map(|word| shown(word)).filter(|word| !word.is_empty()).collect();
        let words = match words.is_empty() {
            true => format!("HTTP {}", response.status.as_u16()),
            false => words.join(": "),
        };
        return Err(failure(format!(
            "the authorization server {issuer} rejected the registration of this client with the redirect URL {redirect_uri}: {words}"
        ))
        .with_hint(register_client()));
    }
    let registered: Registered = response.json().map_err(|error| {
        failure(format!("the registration at the authorization server {issuer} failed: {error}"))
    })?;
    if registered.client_id.is_empty() {
        return Err(failure(format!(
            "the authorization server {issuer} registered this client without a client_id"
        )));
    }
    Ok(ClientRecord {
        id: registered.client_id,
        secret: registered.client_secret,
        // Zero means that the secret does not expire.
        secret_expires_at: registered.client_secret_expires_at.filter(|end| *end > 0),
        method: registered.token_endpoint_auth_method,
        redirect_uri: redirect_uri.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn server(has_documents: bool, has_registration: bool) -> ServerMetadata {
        ServerMetadata {
            issuer: "https://as.example.com".into(),
            client_id_metadata_document_supported: has_documents,
            registration_endpoint: has_registration
                .then(|| "https://as.example.com/register".into()),
            ..ServerMetadata::default()
        }
    }

    /// 2026-07-28, "Client Registration": the priority order.
    #[test]
    fn a_registered_client_comes_first_and_registration_last() {
        let client = RegisteredClient::public("me");
        let url = Some("https://app.example.com/client.json");
        let choose = |client: Option<&RegisteredClient>, url, server: &ServerMetadata| {
            Registration::choose(client, url, server)
                .map(|chosen| {
                    format!("{chosen:?}").split('(').next().unwrap_or_default().to_owned()
                })
                .map_err(|error| error.to_string())
        };
        let all = server(true, true);
        assert_eq!(choose(Some(&client), url, &all), Ok("Given".into()));
        assert_eq!(choose(None, url, &all), Ok("Document".into()));
        assert_eq!(choose(None, None, &all), Ok("Dynamic".into()));
        assert_eq!(choose(None, url, &server(false, true)), Ok("Dynamic".into()));
        let error = choose(None, url, &server(false, false)).unwrap_err();
        assert!(error.contains("neither") && error.contains("client_id"), "{error}");
        let error = choose(None, None, &server(true, false)).unwrap_err();
        assert!(error.contains("client_metadata_url"), "{error}");
        for url in ["http://app.example.com/c.json", "https://app.example.com", "https:///x", ""] {
            let error = choose(None, Some(url), &all).unwrap_err();
            assert!(error.contains("https URL with a path"), "{error}");
        }
    }

    /// 2026-07-28, "Authorization Server Binding".
    #[test]
    fn a_client_of_another_authorization_server_is_not_used() {
        let mut client = RegisteredClient::public("me");
        client.issuer = Some("https://other.example.com".into());
        let error = Registration::choose(Some(&client), None, &server(true, true)).unwrap_err();
        assert!(error.to_string().contains("https://other.example.com"), "{error}");
    }

    #[test]
    fn a_registration_says_that_the_client_is_native() {
        let mut server = server(false, true);
        let body = |server: &ServerMetadata| {
            let request = request(server, "shelf", "http://127.0.0.1:7/callback").unwrap();
            serde_json::from_slice::<serde_json::Value>(&request.body).unwrap()
        };
        let it = body(&server);
        assert_eq!(it["application_type"], "native");
        assert_eq!(it["grant_types"], json!(["authorization_code", "refresh_token"]));
        assert_eq!(it["token_endpoint_auth_method"], "none");
        for (supported, method) in [
            (vec!["client_secret_post", "client_secret_basic"], "client_secret_basic"),
            (vec!["client_secret_post"], "client_secret_post"),
            (vec!["client_secret_basic", "none"], "none"),
        ] {
            let supported = supported.into_iter().map(Into::into).collect();
            server.token_endpoint_auth_methods_supported = Some(supported);
            assert_eq!(body(&server)["token_endpoint_auth_method"], method);
        }
    }

    #[test]
    fn a_failed_registration_is_readable() {
        let answer = |status: u16, body: &str| {
            let response = FetchResponse {
                url: String::new(),
                status: StatusCode::from_u16(status).unwrap(),
                headers: HeaderMap::new(),
                body: body.into(),
            };
            read(&response, &server(false, true), "http://127.0.0.1:7/callback")
        };
        let client = answer(
            201,
            r#"{"client_id":"a","client_secret":"s3cret","client_secret_expires_at":0}"#,
        );
        let client = client.unwrap();
        assert_eq!((client.id.as_str(), client.secret_expires_at), ("a", None));
        assert!(!format!("{client:?}").contains("s3cret"));
        for (status, body, expected) in [
            (
                400,
                r#"{"error":"invalid_redirect_uri","error_description":"no\nloopback"}"#,
                "http://127.0.0.1:7/callback: invalid_redirect_uri: noloopback",
            ),
            (503, "<html>", "HTTP 503"),
            (302, "", "HTTP 302"),
            (201, "<html>", "not the expected JSON"),
            (201, r#"{"client_id":""}"#, "without a client_id"),
            (201, r#"{"client_secret":"s3cret"}"#, "not the expected JSON"),
        ] {
            let error = answer(status, body).unwrap_err().to_string();
            assert!(error.contains(expected) && !error.contains("s3cret"), "{error}");
        }
    }
}
