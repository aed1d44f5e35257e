//! Authorization: what a client without a token learns from the server.

use std::time::Duration;

use gudgeon::{
    Revision,
    auth::fetch::{FetchRequest, FetchResponse, check_url},
    transport::fetch,
};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::{
    check::{Check, Section},
    report::{Report, shown},
    wire::http::{Address, Head},
};

pub const CHECKS: &[&Check] = &[
    &CHALLENGE,
    &HEADER,
    &METADATA,
    &RESOURCE,
    &SERVERS,
    &SERVER_METADATA,
    &ISSUER,
    &PKCE,
    &BAD_TOKEN,
];

const DISCOVERY: Section = Section::moved(
    "basic/authorization/authorization-server-discovery#protected-resource-metadata-discovery-requirements",
    "basic/authorization#authorization-server-location",
);

static CHALLENGE: Check = Check {
    id: "auth.challenge",
    title: "sends WWW-Authenticate with status 401",
    section: Section::new("https://www.rfc-editor.org/rfc/rfc9110#section-11.6.1"),
    fix: "add WWW-Authenticate: Bearer resource_metadata=\"…\"",
    since: Revision::V2025_03_26,
    ..Check::ANY
};
static HEADER: Check = Check {
    id: "auth.resource-metadata",
    title: "names its metadata in WWW-Authenticate",
    section: DISCOVERY,
    fix: "add resource_metadata=\"https://…/.well-known/oauth-protected-resource\" to WWW-Authenticate",
    since: Revision::V2025_06_18,
    until: Revision::V2025_06_18,
    ..Check::ANY
};
static METADATA: Check = Check {
    id: "auth.metadata",
    title: "serves Protected Resource Metadata",
    section: DISCOVERY,
    fix: "serve the JSON of RFC 9728 at the URL in WWW-Authenticate, or below /.well-known/oauth-protected-resource",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static RESOURCE: Check = Check {
    id: "auth.resource",
    title: "names itself in its metadata",
    section: Section::new("https://www.rfc-editor.org/rfc/rfc9728#section-3.3"),
    fix: "set \"resource\" to the URL of the MCP endpoint; clients reject metadata of another resource",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static SERVERS: Check = Check {
    id: "auth.servers",
    title: "names an authorization server in its metadata",
    section: Section::moved(
        "basic/authorization/authorization-server-discovery#authorization-server-location",
        "basic/authorization#authorization-server-location",
    ),
    fix: "set \"authorization_servers\" to an array of at least one issuer",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static SERVER_METADATA: Check = Check {
    id: "auth.server-metadata",
    title: "has authorization servers with metadata",
    section: Section::moved(
        "basic/authorization/authorization-server-discovery#authorization-server-metadata-discovery",
        "basic/authorization#authorization-server-metadata-discovery",
    ),
    fix: "serve /.well-known/oauth-authorization-server or /.well-known/openid-configuration of the issuer",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static ISSUER: Check = Check {
    id: "auth.issuer",
    title: "has authorization servers whose metadata name their own issuer",
    section: Section::new("https://www.rfc-editor.org/rfc/rfc8414#section-3.3"),
    fix: "set \"issuer\" to exactly the URL in \"authorization_servers\"",
    since: Revision::V2025_06_18,
    ..Check::ANY
};
static PKCE: Check = Check {
    id: "auth.pkce",
    title: "has authorization servers that announce PKCE",
    section: Section::moved(
        "basic/authorization/security-considerations#authorization-code-protection",
        "basic/authorization#authorization-code-protection",
    ),
    fix: "add \"code_challenge_methods_supported\": [\"S256\"] to the metadata; clients refuse to go on without it",
    since: Revision::V2025_11_25,
    ..Check::ANY
};
static BAD_TOKEN: Check = Check {
    id: "auth.bad-token",
    title: "rejects an invalid token with status 401",
    section: Section::moved(
        "basic/authorization#token-handling",
        "basic/authorization#token-handling",
    ),
    fix: "return 401 Unauthorized",
    since: Revision::V2025_03_26,
    ..Check::ANY
};

/// The largest document that is read, in bytes.
const MAX_DOCUMENT: usize = 1024 * 1024;

/// Checks the answer to a request without a token, and the metadata that it names.
pub async fn run(
    address: &Address,
    head: &Head,
    revisions: &[Revision],
    limit: Duration,
    report: &mut Report,
) {
    let challenge = head.header("www-authenticate");
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let mut record = |check: &'static Check, outcome: Result<(), String>| {
        for revision in revisions {
            report.record(check, *revision, outcome.clone());
        }
    };
    let observed = format!("HTTP 401, WWW-Authenticate: {}", shown(challenge.unwrap_or("(none)")));
    record(&CHALLENGE, if challenge.is_some() { Ok(()) } else { Err(observed.clone()) });
    record(&HEADER, if named.is_some() { Ok(()) } else { Err(observed) });

    let text = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let headers = [("authorization", Some("Bearer gudgeon-doctor"))];
    let exchange = address.post(&text, &headers, &[json!(1)], limit).await;
    let status = exchange.http.as_ref().map(|head| head.status);
    record(&BAD_TOKEN, if status == Some(401) { Ok(()) } else { Err(exchange.observed()) });

    let path = path(&address.url);
    let candidates = match &named {
        Some(url) => vec![url.clone()],
        None => [
            format!("/.well-known/oauth-protected-resource{path}"),
            "/.well-known/oauth-protected-resource".into(),
        ]
        .iter()
        .map(|path| address.at(path))
        .collect(),
    };
    let (document, tried) = first_document(&candidates, limit).await;
    let Some(document) = document else {
        record(&METADATA, Err(tried));
        return;
    };
    record(&METADATA, Ok(()));
    let resource = document["resource"].as_str().unwrap_or_default();
    let is_own = covers(resource, &address.url);
    record(
        &RESOURCE,
        if is_own {
            Ok(())
        } else {
            Err(format!("\"resource\": {}", shown(&document["resource"].to_string())))
        },
    );
    let servers: Vec<_> = document["authorization_servers"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let listed = shown(&document["authorization_servers"].to_string());
    record(
        &SERVERS,
        if servers.is_empty() {
            Err(format!("\"authorization_servers\": {listed}"))
        } else {
            Ok(())
        },
    );
    for issuer in servers.iter().take(3) {
        let (metadata, tried) = first_document(&well_known(issuer), limit).await;
        let Some(metadata) = metadata else {
            record(&SERVER_METADATA, Err(tried));
            continue;
        };
        record(&SERVER_METADATA, Ok(()));
        let named = shown(&metadata["issuer"].to_string());
        record(
            &ISSUER,
            if metadata["issuer"] == *issuer {
                Ok(())
            } else {
                Err(format!("\"issuer\": {named}, not {issuer:?}"))
            },
        );
        let methods = &metadata["code_challenge_methods_supported"];
        let has_s256 =
            methods.as_array().is_some_and(|methods| methods.iter().any(|method| method == "S256"));
        let observed =
            format!("\"code_challenge_methods_supported\": {}", shown(&methods.to_string()));
        record(&PKCE, if has_s256 { Ok(()) } else { Err(observed) });
    }
}

/// Returns a parameter of a challenge.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let lower = challenge.to_ascii_lowercase();
    let start = lower.find(&format!("{name}="))? + name.len() + 1;
    let rest = &challenge[start..];
    let value = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => rest.split([',', ' ']).next(),
    };
    value.map(str::to_owned)
}

/// Returns the path of a URL, without its query.
fn path(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |parts| parts.1);
    let path = rest.find('/').map_or("", |start| &rest[start..]);
    path.split('?').next().unwrap_or_default().trim_end_matches('/')
}

/// Returns whether a resource identifier is the URL or a prefix of it, as clients accept it.
fn covers(resource: &str, url: &str) -> bool {
    let resource = resource.trim_end_matches('/');
    let url = url.split('?').next().unwrap_or_default().trim_end_matches('/');
    let rest = url.strip_prefix(resource);
    resource.contains("://") && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the addresses of an issuer's metadata, in the order in which clients try them.
fn well_known(issuer: &str) -> Vec<String> {
    let issuer = issuer.trim_end_matches('/');
    let path = path(issuer);
    let origin = &issuer[..issuer.len() - path.len()];
    let mut urls = vec![
        format!("{origin}/.well-known/oauth-authorization-server{path}"),
        format!("{origin}/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        urls.push(format!("{issuer}/.well-known/openid-configuration"));
    }
    urls
}

/// Returns the first of the documents that is there, or what came instead of the last.
async fn first_document(urls: &[String], limit: Duration) -> (Option<Value>, String) {
    let mut tried = String::new();
    for url in urls {
        match document(url, limit).await {
            Ok(document) => return (Some(document), tried),
            Err(reason) => tried = format!("{}: {}", shown(url), shown(&reason)),
        }
    }
    (None, tried)
}

async fn document(url: &str, limit: Duration) -> Result<Value, String> {
    check_url(url).map_err(|error| error.to_string())?;
    let request = FetchRequest::get(url, MAX_DOCUMENT).map_err(|error| error.to_string())?;
    let fetched = async {
        let mut response = fetch::open(request).await.map_err(|error| error.to_string())?;
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await {
            body.extend_from_slice(&chunk.map_err(|error| error.to_string())?);
            if body.len() > MAX_DOCUMENT {
                return Err(format!("the document has more than {MAX_DOCUMENT} bytes"));
            }
        }
        let (status, headers) = (response.status, response.headers.clone());
        FetchResponse { url: url.to_owned(), status, headers, body }
            .document::<Value>()
            .map_err(|error| error.to_string())
    };
    let until = Instant::now() + limit;
    tokio::time::timeout_at(until, fetched).await.unwrap_or_else(|_| Err("no answer".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_challenge_names_the_metadata() {
        let challenge =
            r#"Bearer error="invalid_token", resource_metadata="https://a/.well-known/x""#;
        assert_eq!(parameter(challenge, "resource_metadata").unwrap(), "https://a/.well-known/x");
        assert_eq!(parameter("Bearer", "resource_metadata"), None);
    }

    #[test]
    fn a_resource_is_the_url_or_a_prefix() {
        assert!(covers("https://a/mcp", "https://a/mcp"));
        assert!(covers("https://a/", "https://a/mcp"));
        assert!(!covers("https://a/mc", "https://a/mcp"));
        assert!(!covers("https://b/mcp", "https://a/mcp"));
        assert!(!covers("", "https://a/mcp"));
    }

    #[test]
    fn the_metadata_of_an_issuer_with_a_path_has_three_addresses() {
        let urls = well_known("https://a/tenant");
        assert_eq!(urls[0], "https://a/.well-known/oauth-authorization-server/tenant");
        assert_eq!(urls[2], "https://a/tenant/.well-known/openid-configuration");
        assert_eq!(well_known("https://a/").len(), 2);
    }
}
