//! `gudgeon read`: reads a resource.

use std::process::ExitCode;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use clap::Args;
use gudgeon::{
    Client,
    client::Operation,
    error::{Error, ErrorKind},
    protocol::{Raw, ReadResourceResult, Resource, ResourceContents, code, json},
    router::uri_template::UriTemplate,
};

use super::{call::unknown, request::RequestArguments};
use crate::{
    escape,
    failure::{Failure, FailureKind},
    output,
    render::{RenderArguments, Renderer},
    style,
    values::{Assignments, Given},
};

const EXAMPLES: &str = "\
Examples:
  gudgeon read http://127.0.0.1:8000/mcp shelf://about
  gudgeon read server.py 'shelf://books/{id}' id=42
  gudgeon read server.py shelf://covers/42 > cover.png";

#[derive(Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "gudgeon read [OPTIONS] TARGET URI [VARIABLE=VALUE]...\n       gudgeon read [OPTIONS] URI [VARIABLE=VALUE]... -- COMMAND..."
)]
pub struct Arguments {
    /// The server, the URI of the resource or a URI template, and the values of its variables
    #[arg(value_name = "TARGET URI [VARIABLE=VALUE]")]
    words: Vec<String>,
    #[command(flatten)]
    request: RequestArguments,
}

pub async fn run(arguments: Arguments) -> Result<ExitCode, Failure> {
    let request = arguments.request;
    let (target, uri, words) = request.split(arguments.words, "URI", "resources")?;
    let variables = variables(&uri, &Assignments::parse(&words)?)?;
    request
        .run(&target, async |client| {
            let operation =
                Operation::ReadResource { uri: uri.clone(), variables: variables.clone() };
            let raw = match client.call(operation, client.options()).await {
                Ok(reply) => reply.result,
                Err(error) => return Err(explain(client, &uri, variables.is_some(), error).await),
            };
            if request.json {
                output::raw_json(raw.get())?;
            } else {
                show(&raw, &request.render)?;
            }
            Ok(ExitCode::SUCCESS)
        })
        .await
}

/// Returns the values of a template's variables; `None` for a URI.
fn variables(uri: &str, given: &Assignments) -> Result<Option<Raw>, Failure> {
    if !uri.contains('{') && given.is_empty() {
        return Ok(None);
    }
    let template = UriTemplate::parse(uri)
        .map_err(|error| Failure::usage(format!("{uri:?} is not a URI template: {error}")))?;
    let names: Vec<_> = template.kinds().collect();
    let examples = names
        .iter()
        .map(|variable| format!("{}=VALUE", variable.name))
        .collect::<Vec<_>>()
        .join(" ");
    if let Some(other) =
        given.iter().find(|assignment| names.iter().all(|known| known.name != assignment.name))
    {
        let failure = Failure::usage(format!("the URI {uri:?} has no variable '{}'", other.name));
        return Err(match names.is_empty() {
            true => failure.with_hint("a template has its variables in braces: shelf://books/{id}"),
            false => failure.with_hint(format!("write {examples}")),
        });
    }
    if let Some(missing) =
        names.iter().find(|variable| !variable.is_optional() && given.get(&variable.name).is_none())
    {
        let message = format!("the variable '{}' of {uri:?} has no value", missing.name);
        return Err(Failure::usage(message).with_hint(format!("write {examples}")));
    }
    let mut object = json::ObjectWriter::with_capacity(64);
    for assignment in given.iter() {
        let value = |given: &Given| match given {
            Given::Text(text) => serde_json::Value::from(text.as_str()).to_string(),
            Given::Json(json) => json.get().to_owned(),
        };
        match &assignment.values[..] {
            [only] => object.raw(&assignment.name, &value(only)),
            several => {
                let values: Vec<_> = several.iter().map(value).collect();
                object.raw(&assignment.name, &format!("[{}]", values.join(",")))
            }
        };
    }
    Ok(Some(json::raw(object.finish())))
}

fn show(raw: &Raw, arguments: &RenderArguments) -> Result<(), Failure> {
    let result: ReadResourceResult = serde_json::from_str(raw.get()).map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("the server's result is invalid: {error}"))
    })?;
    let is_piped = !output::is_terminal() && !arguments.saves();
    for contents in &result.contents {
        match contents {
            // Into a file or a pipe goes exactly what the resource contains.
            ResourceContents::Text(content) if is_piped => output::bytes(content.text.as_bytes())?,
            ResourceContents::Blob(content) if is_piped => {
                let bytes = BASE64_STANDARD.decode(&content.blob).map_err(|error| {
                    let message =
                        format!("the contents of {:?} are not valid base64: {error}", content.uri);
                    Failure::new(FailureKind::Protocol, message)
                })?;
                output::bytes(&bytes)?;
            }
            contents => {
                if result.contents.len() > 1 {
                    output::line(style::heading(&escape::one_line(uri_of(contents))))?;
                }
                Renderer::new(arguments, uri_of(contents)).contents(contents)?;
            }
        }
    }
    Ok(())
}

fn uri_of(contents: &ResourceContents) -> &str {
    match contents {
        ResourceContents::Text(content) => &content.uri,
        ResourceContents::Blob(content) => &content.uri,
    }
}

/// Names a resource that is most like an unknown one.
async fn explain(client: &Client, uri: &str, is_template: bool, error: Error) -> Failure {
    let is_unknown =
        error.kind == ErrorKind::NotFound || error.code == Some(code::RESOURCE_NOT_FOUND);
    if !is_unknown || is_template {
        return error.into();
    }
    match client.list::<Resource>().await {
        Ok(known) if !known.iter().any(|resource| resource.uri == uri) => {
            unknown("resource", uri, known.iter().map(|resource| resource.uri.as_str()))
        }
        _ => error.into(),
    }
}
