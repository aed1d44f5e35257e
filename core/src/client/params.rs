//! The params of requests, as JSON.

use serde_json::Value;

use crate::{
    error::Error,
    protocol::{CompletionTarget, Raw, json},
    router::uri_template::UriTemplate,
};

pub(super) fn tool_params(name: &str, arguments: Option<&Raw>) -> String {
    let mut params = json::ObjectWriter::with_capacity(name.len() + 32);
    params.member("name", name);
    if let Some(arguments) = arguments {
        params.raw("arguments", arguments.get());
    }
    params.finish()
}

/// Returns params with this `_meta`.
pub(super) fn with_meta(params: &str, meta: Option<&Raw>) -> String {
    let Some(meta) = meta else { return params.to_owned() };
    let mut with_meta = json::ObjectWriter::with_capacity(params.len() + meta.get().len() + 16);
    with_meta.splice(params).raw("_meta", meta.get());
    with_meta.finish()
}

pub(super) fn cursor_params(cursor: Option<String>) -> String {
    let mut params = json::ObjectWriter::with_capacity(32);
    if let Some(cursor) = cursor {
        params.member("cursor", &cursor);
    }
    params.finish()
}

pub(super) fn complete_params(
    target: &CompletionTarget,
    argument: &str,
    value: &str,
    given: Option<&Raw>,
) -> String {
    let reference = match target {
        CompletionTarget::Prompt(name) => serde_json::json!({"type": "ref/prompt", "name": name}),
        CompletionTarget::Resource(uri) => serde_json::json!({"type": "ref/resource", "uri": uri}),
    };
    let mut params = json::ObjectWriter::with_capacity(128);
    params
        .member("ref", &reference)
        .member("argument", &serde_json::json!({"name": argument, "value": value}));
    if let Some(given) = given {
        params.raw("context", &format!(r#"{{"arguments":{}}}"#, given.get()));
    }
    params.finish()
}

pub(super) fn expand(template: &str, variables: &Raw) -> Result<String, Error> {
    let template = UriTemplate::parse(template)
        .map_err(|error| Error::misuse(format!("{template:?}: {error}")))?;
    let values: serde_json::Map<String, Value> = serde_json::from_str(variables.get())
        .map_err(|error| Error::misuse(format!("variables must be an object: {error}")))?;
    let unknown = values.keys().find(|name| !template.variables().any(|known| known == *name));
    if let Some(unknown) = unknown {
        return Err(Error::misuse(format!(
            "the template {:?} has no variable {unknown:?}",
            template.text()
        )));
    }
    Ok(template.expand(&values.into_iter().collect::<Vec<_>>()))
}
