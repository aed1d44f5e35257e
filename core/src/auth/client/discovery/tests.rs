use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::*;

const MCP: &str = "https://mcp.example.com/mcp";

/// Answers the requests of a search; other locations are missing. Returns the locations in order, and the outcome.
fn search(
    advertised: Option<&str>,
    documents: &[(&str, Value)],
) -> (Vec<String>, Result<ServerRecord, String>) {
    let mut asked = Vec::new();
    let begun = Discovery::of_resource(MCP, advertised, None);
    let (mut search, mut request) = match begun {
        Ok(begun) => begun,
        Err(error) => return (asked, Err(error.to_string())),
    };
    loop {
        asked.push(request.url.clone());
        let found =
            documents.iter().find(|(url, _)| *url == request.url).map(|(_, document)| document);
        let answer = match found {
            Some(Value::Number(status)) => {
                answer(&request.url, u16::try_from(status.as_u64().unwrap()).unwrap(), "")
            }
            Some(Value::String(text)) if text.is_empty() => {
                Err(FetchError::Connection("refused".into()))
            }
            Some(document) => answer(&request.url, 200, &document.to_string()),
            None => answer(&request.url, 404, ""),
        };
        match search.take(answer) {
            Ok(Next::Fetch(next)) => request = *next,
            Ok(Next::Found(found)) => return (asked, Ok(*found)),
            Err(error) => return (asked, Err(error.to_string())),
        }
    }
}

#[expect(clippy::unnecessary_wraps, reason = "it is an answer to a request")]
fn answer(url: &str, status: u16, body: &str) -> Result<FetchResponse, FetchError> {
    let status = StatusCode::from_u16(status).unwrap();
    Ok(FetchResponse { url: url.into(), status, headers: HeaderMap::new(), body: body.into() })
}

fn resource(servers: &[&str]) -> Value {
    json!({ "resource": MCP, "authorization_servers": servers })
}

fn issuer(issuer: &str) -> Value {
    json!({ "issuer": issuer, "token_endpoint": format!("{issuer}/token") })
}

const AT_PATH: &str = "https://mcp.example.com/.well-known/oauth-protected-resource/mcp";
const AT_ROOT: &str = "https://mcp.example.com/.well-known/oauth-protected-resource";
const AS: &str = "https://as.example.com/.well-known/oauth-authorization-server";

/// 2026-07-28, "Protected Resource Metadata Discovery Requirements" and "Authorization Server Metadata Discovery".
#[test]
fn the_order_is_that_of_the_specification() {
    let (asked, found) = search(
        Some("https://elsewhere.example.com/metadata.json"),
        &[
            (
                "https://elsewhere.example.com/metadata.json",
                resource(&["https://as.example.com/t"]),
            ),
            (
                "https://as.example.com/t/.well-known/openid-configuration",
                issuer("https://as.example.com/t"),
            ),
        ],
    );
    assert_eq!(
        asked,
        [
            "https://elsewhere.example.com/metadata.json",
            "https://as.example.com/.well-known/oauth-authorization-server/t",
            "https://as.example.com/.well-known/openid-configuration/t",
            "https://as.example.com/t/.well-known/openid-configuration",
        ]
    );
    assert_eq!(found.unwrap().resource, MCP);
    let documents =
        [(AT_ROOT, resource(&["https://as.example.com"])), (AS, issuer("https://as.example.com"))];
    let (asked, found) = search(None, &documents);
    assert_eq!(asked, [AT_PATH, AT_ROOT, AS]);
    assert!(!found.unwrap().is_legacy);
}

#[test]
fn metadata_of_another_resource_or_issuer_stop_the_flow() {
    let other = json!({ "resource": "https://evil.example/mcp", "authorization_servers": ["https://as.example.com"] });
    let (asked, found) = search(None, &[(AT_PATH, other), (AS, issuer("https://as.example.com"))]);
    assert_eq!(asked, [AT_PATH]);
    assert!(found.unwrap_err().contains("https://evil.example/mcp"));
    let documents =
        [(AT_PATH, resource(&["https://as.example.com"])), (AS, issuer("https://evil.example"))];
    let (asked, found) = search(None, &documents);
    assert_eq!(asked, [AT_PATH, AS]);
    assert!(found.unwrap_err().contains("of the issuer \"https://evil.example\""));
    let (_, found) = search(None, &[(AT_PATH, resource(&[]))]);
    assert!(found.unwrap_err().contains("no authorization server"));
    let (_, found) = search(None, &[(AT_PATH, resource(&["http://as.example.com"]))]);
    assert!(found.unwrap_err().contains("use https"));
    let (asked, found) = search(Some("http://mcp.example.com/metadata"), &[]);
    assert_eq!(asked, [AT_PATH, AT_ROOT]);
    assert!(found.unwrap_err().contains("use https"));
}

#[test]
fn another_authorization_server_takes_the_place_of_one_that_is_gone() {
    let documents = [
        (AT_PATH, resource(&["https://gone.example.com", "https://as.example.com"])),
        (AS, issuer("https://as.example.com")),
    ];
    let (_, found) = search(None, &documents);
    assert_eq!(found.unwrap().metadata.issuer, "https://as.example.com");
    let (_, found) = search(None, &[(AT_PATH, resource(&["https://gone.example.com"]))]);
    assert!(found.unwrap_err().contains("https://gone.example.com has no usable metadata"));
}

#[test]
fn a_server_elsewhere_names_no_url_on_this_machine() {
    for origin in [
        "http://127.0.0.1:9",
        "http://localhost:9",
        "http://[::1]:9",
        "https://localhost.",
        "https://0.0.0.0",
        "https://[::ffff:127.0.0.1]",
    ] {
        let url = format!("{origin}/x?key=s3cret");
        let (asked, found) = search(Some(&url), &[]);
        assert_eq!(asked, [AT_PATH, AT_ROOT], "{origin}");
        let mut errors = vec![found.unwrap_err()];
        let (asked, found) = search(None, &[(AT_PATH, resource(&[origin]))]);
        assert_eq!(asked, [AT_PATH], "{origin}");
        errors.push(found.unwrap_err());
        for endpoint in ["authorization_endpoint", "token_endpoint", "registration_endpoint"] {
            let mut metadata = issuer("https://as.example.com");
            metadata[endpoint] = json!(url);
            let resource = resource(&["https://as.example.com"]);
            errors.push(search(None, &[(AT_PATH, resource), (AS, metadata)]).1.unwrap_err());
            // 2025-03-26
            let mut metadata = issuer("https://mcp.example.com");
            metadata[endpoint] = json!(url);
            let at_origin = "https://mcp.example.com/.well-known/oauth-authorization-server";
            errors.push(search(None, &[(at_origin, metadata)]).1.unwrap_err());
        }
        for error in errors {
            assert!(error.contains("on this machine") && error.contains(origin), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
    let advertised = "http://localhost:9/x";
    for local in ["http://127.0.0.1:8/mcp", "http://0.0.0.0:8/mcp"] {
        let (_, request) = Discovery::of_resource(local, Some(advertised), None).unwrap();
        assert_eq!(request.url, advertised);
    }
    let (mut search, _) = Discovery::of_issuer("https://idp.example.com").unwrap();
    let location = "https://idp.example.com/.well-known/oauth-authorization-server";
    let metadata = json!({ "issuer": "https://idp.example.com", "token_endpoint": advertised });
    let error = search.take(answer(location, 200, &metadata.to_string())).unwrap_err();
    assert!(error.to_string().contains("on this machine"), "{error}");
}

#[test]
fn the_clients_own_authorization_server_is_preferred() {
    let (mut search, _) =
        Discovery::of_resource(MCP, None, Some("https://own.example.com")).unwrap();
    let body = resource(&["https://as.example.com", "https://own.example.com"]).to_string();
    let Ok(Next::Fetch(request)) = search.take(answer(AT_PATH, 200, &body)) else { panic!() };
    assert!(request.url.starts_with("https://own.example.com/"));
}

/// 2025-03-26, "Server Metadata Discovery" and "Fallbacks for Servers without Metadata Discovery".
#[test]
fn without_metadata_of_the_resource_the_origin_is_the_authorization_server() {
    let at_origin = "https://mcp.example.com/.well-known/oauth-authorization-server";
    let (asked, found) = search(None, &[(at_origin, issuer("https://mcp.example.com"))]);
    assert_eq!(asked, [AT_PATH, AT_ROOT, at_origin]);
    let found = found.unwrap();
    assert!(found.is_legacy && found.metadata.code_challenge_methods_supported.is_none());
    let (_, found) = search(None, &[]);
    let found = found.unwrap();
    assert_eq!(found.resource, MCP);
    let token = found.metadata.token_endpoint.unwrap();
    assert_eq!(token, "https://mcp.example.com/token");
    let (_, found) = search(None, &[(at_origin, issuer("https://evil.example"))]);
    assert!(found.is_err());
}

#[test]
fn a_server_that_fails_is_not_one_without_metadata() {
    for problem in [json!(500), json!(302), json!("")] {
        let (asked, found) = search(None, &[(AT_PATH, problem)]);
        assert_eq!(asked, [AT_PATH, AT_ROOT]);
        let error = found.unwrap_err();
        assert!(error.contains(&format!("{AT_PATH}: ")), "{error}");
        assert!(error.ends_with(&format!("; {AT_ROOT}: it answered with status 404")), "{error}");
    }
}
