//! `gudgeon auth cimd`: client-id metadata documents, by which a client names itself with a URL.

use std::{path::Path, process::ExitCode};

use clap::{Args, Subcommand};
use gudgeon::{
    auth::{
        authorization_server::{check_document, check_redirect},
        fetch::{FetchError, FetchRequest, MAX_DOCUMENT},
    },
    transport::fetch,
};
use serde_json::{Map, Value, json};

use crate::{
    escape,
    failure::{Failure, FailureKind},
    files::read,
    output,
};

/// The size that the draft recommends as the limit of authorization servers, in bytes.
const RECOMMENDED_SIZE: usize = 5 * 1024;

const EXAMPLES: &str = "\
Examples:
  gudgeon auth cimd create https://app.example.com/client.json --name Shelf \\
    --redirect http://127.0.0.1/callback
  gudgeon auth cimd validate client.json
  gudgeon auth cimd validate https://app.example.com/client.json";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Print a document for a client
    Create(CreateArguments),
    /// Check a document in a file or at its URL
    Validate(ValidateArguments),
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct CreateArguments {
    /// The URL at which the document will be, which is the client's id
    url: String,
    /// The name of the client
    #[arg(long)]
    name: String,
    /// A redirect URL of the client; may be given several times
    #[arg(long = "redirect", value_name = "URL", required = true)]
    redirects: Vec<String>,
    /// The home page of the client
    #[arg(long, value_name = "URL")]
    client_uri: Option<String>,
    /// The logo of the client
    #[arg(long, value_name = "URL")]
    logo_uri: Option<String>,
    /// The scopes that the client may request, with spaces between them
    #[arg(long)]
    scope: Option<String>,
}

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
struct ValidateArguments {
    /// A file, or the URL of a document
    document: String,
    /// The URL at which the document of a file will be; by default its `client_id`
    #[arg(long)]
    url: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A problem of a document.
#[derive(Debug, Default, serde::Serialize)]
struct Findings {
    errors: Vec<String>,
    warnings: Vec<String>,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    match arguments.command {
        Command::Create(arguments) => create(arguments),
        Command::Validate(arguments) => validate(arguments).await,
    }
}

fn create(arguments: CreateArguments) -> Result<ExitCode, Failure> {
    let CreateArguments { url, name, redirects, client_uri, logo_uri, scope } = arguments;
    let mut document = Map::new();
    let mut add = |name: &str, value: Value| drop(document.insert(name.to_owned(), value));
    add("client_id", url.as_str().into());
    add("client_name", name.into());
    add("redirect_uris", redirects.into());
    for (name, value) in [("client_uri", client_uri), ("logo_uri", logo_uri), ("scope", scope)] {
        if let Some(value) = value {
            add(name, value.into());
        }
    }
    add("grant_types", json!(["authorization_code", "refresh_token"]));
    add("response_types", json!(["code"]));
    add("token_endpoint_auth_method", "none".into());
    let document = Value::Object(document);
    if let Some(problem) = check(&url, &document).errors.first() {
        return Err(Failure::usage(problem.as_str()));
    }
    output::json(&document)?;
    Ok(ExitCode::SUCCESS)
}

async fn validate(arguments: ValidateArguments) -> Result<ExitCode, Failure> {
    let ValidateArguments { document: place, url, json: as_json } = arguments;
    let is_url = place.contains("://");
    let mut findings = Findings::default();
    let bytes = match is_url {
        true => fetched(&place, &mut findings).await?,
        false => read::file(Path::new(&place), read::MAX_DOCUMENT).map_err(|error| {
            Failure::new(FailureKind::File, format!("{place} can't be read: {error}"))
        })?,
    };
    if bytes.len() > RECOMMENDED_SIZE {
        let size = bytes.len();
        findings.warnings.push(format!(
            "it has {size} bytes; authorization servers may refuse more than {RECOMMENDED_SIZE}"
        ));
    }
    match serde_json::from_slice::<Value>(&bytes) {
        Ok(document) => {
            let own = document.get("client_id").and_then(Value::as_str).map(ToOwned::to_owned);
            let url = if is_url { Some(place.clone()) } else { url.or(own) };
            let found = check(url.as_deref().unwrap_or_default(), &document);
            findings.errors.extend(found.errors);
            findings.warnings.extend(found.warnings);
        }
        Err(error) => findings.errors.push(format!("it is not valid JSON: {error}")),
    }
    if as_json {
        output::json(&findings)?;
    } else {
        for (kind, problems) in [("error", &findings.errors), ("warning", &findings.warnings)] {
            for problem in problems {
                output::line(escape::one_line(&format!("{kind}: {place}: {problem}")))?;
            }
        }
        if findings.errors.is_empty() {
            output::line(format_args!("{place} is a valid client metadata document"))?;
        }
    }
    Ok(if findings.errors.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn fetched(url: &str, findings: &mut Findings) -> Result<Vec<u8>, Failure> {
    let request = FetchRequest::get(url, MAX_DOCUMENT);
    let answer = match request {
        Ok(request) => fetch::send(request).await,
        Err(error) => Err(error),
    };
    let answer = answer.map_err(|error| {
        let kind = match error {
            FetchError::Url(_) => FailureKind::Usage,
            _ => FailureKind::Connect,
        };
        Failure::new(kind, format!("{url}: {error}"))
    })?;
    if answer.status.as_u16() != 200 {
        let status = answer.status.as_u16();
        findings.errors.push(format!("its server answers with status {status}, not 200"));
    }
    let kind = answer.headers.get("content-type").and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if kind != "application/json" && !kind.ends_with("+json") {
        findings.errors.push(format!("its Content-Type is {kind:?}, not application/json"));
    }
    Ok(answer.body)
}

/// Checks a document by the draft "OAuth Client ID Metadata Document" and by MCP's rules (Authorization › Client ID Metadata
/// Documents).
fn check(url: &str, document: &Value) -> Findings {
    let mut findings = Findings::default();
    let Some(members) = document.as_object() else {
        findings.errors.push("it is not a JSON object".into());
        return findings;
    };
    if url.is_empty() {
        findings.errors.push("client_id is missing or not a string".into());
        return findings;
    }
    check_url(url, &mut findings);
    let text = |name: &str| members.get(name).and_then(Value::as_str);
    if text("client_name").is_none_or(|name| name.trim().is_empty()) {
        findings.errors.push("client_name is missing; MCP requires it".into());
    }
    let redirects = members.get("redirect_uris").and_then(Value::as_array);
    let redirects: Vec<_> = redirects.into_iter().flatten().filter_map(Value::as_str).collect();
    if redirects.is_empty() {
        findings.errors.push("redirect_uris is missing or empty; MCP requires it".into());
    }
    for redirect in redirects {
        if let Err(problem) = check_redirect(redirect) {
            findings.errors.push(format!("redirect_uris: {redirect:?}: {problem}"));
        } else if redirect.starts_with("http://localhost") {
            let better = redirect.replacen("localhost", "127.0.0.1", 1);
            findings.warnings.push(format!(
                "redirect_uris: {redirect:?}: an address is safer than the name, as {better:?} (RFC 8252, section 8.3)"
            ));
        }
    }
    for secret in ["client_secret", "client_secret_expires_at"] {
        if members.contains_key(secret) {
            findings
                .errors
                .push(format!("{secret} is not allowed: everybody can read the document"));
        }
    }
    // The rules of our authorization server, unless a problem that it has was found already.
    if let Err(problem) = check_document(url, document)
        && findings.errors.is_empty()
    {
        findings.errors.push(problem);
    }
    findings
}

fn check_url(url: &str, findings: &mut Findings) {
    let mut error = |problem: &str| findings.errors.push(format!("client_id {url:?}: {problem}"));
    let Some(rest) = url.strip_prefix("https://") else {
        return error("the scheme must be https");
    };
    let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    if host.is_empty() || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        error("it is not a URL");
    }
    if host.contains('@') {
        error("it must not have a user name or password");
    }
    if url.contains('#') {
        error("it must not have a fragment");
    }
    let (path, query) = match path.split_once(['?', '#']) {
        Some((before, after)) => (before, Some(after)),
        None => (path, None),
    };
    if path.is_empty() {
        error("it must have a path, such as /client.json");
    }
    if path.split('/').any(|segment| matches!(segment, "." | "..")) {
        error("its path must not have the segments `.` and `..`");
    }
    if query.is_some() && !url.contains('#') {
        findings.warnings.push(format!("client_id {url:?}: it should not have a query"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn errors(url: &str, change: impl FnOnce(&mut Value)) -> Vec<String> {
        let mut document = json!({
            "client_id": url, "client_name": "Shelf", "redirect_uris": ["http://127.0.0.1/callback"],
        });
        change(&mut document);
        check(url, &document).errors
    }

    type Change = fn(&mut Value);

    #[test]
    fn rules_of_the_draft_are_checked() {
        let url = "https://app.example.com/client.json";
        assert_eq!(errors(url, |_| ()), Vec::<String>::new());
        for (bad, problem) in [
            ("http://app.example.com/c", "scheme must be https"),
            ("https://app.example.com", "must have a path"),
            ("https://app.example.com/a/../c", "segments"),
            ("https://app.example.com/c#x", "fragment"),
            ("https://me:it@app.example.com/c", "user name"),
        ] {
            let found = errors(bad, |_| ());
            assert!(found.iter().any(|error| error.contains(problem)), "{bad}: {found:?}");
        }
        let changes: [(Change, &str); 6] = [
            (|document| document["client_id"] = "https://other.example/c".into(), "is not its URL"),
            (|document| document["client_name"] = "".into(), "client_name"),
            (|document| document["redirect_uris"] = json!([]), "redirect_uris is missing"),
            (|document| document["redirect_uris"] = json!(["javascript:alert(1)"]), "scheme"),
            (|document| document["client_secret"] = "s".into(), "client_secret is not allowed"),
            (
                |document| document["token_endpoint_auth_method"] = "client_secret_post".into(),
                "with a secret",
            ),
        ];
        for (change, problem) in changes {
            let found = errors(url, change);
            assert!(found.iter().any(|error| error.contains(problem)), "{problem}: {found:?}");
        }
    }
}
