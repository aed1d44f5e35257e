//! The handlers of what an upstream server offers: each passes its calls on.

use std::sync::Arc;

use super::{connections::Connections, questions::Asking};
use crate::{
    client::{CallOptions, Client, Operation},
    error::{Error, ErrorKind},
    protocol::{ClientCapabilities, CompletionTarget, Members, Raw, RootsCapability, json, meta},
    router::{self, Failure, Handler, Reply},
    server::{Context, NativeSubject, OnSubscribed, native_handler},
    session::server::CallContext,
};

/// The part of the other server that a handler passes calls to.
#[derive(Clone, Debug)]
pub(super) enum Subject {
    Tool(String),
    /// A resource; of a template, the URI comes with the call.
    Resource(Option<String>),
    Prompt(String),
    Completion(CompletionTarget, String),
}

impl Subject {
    /// Returns the registration as middleware sees it, of the part with this prefix.
    fn native(&self, part: &str) -> NativeSubject {
        let (kind, key, argument) = match self {
            Self::Tool(name) => ("tools", name.as_str(), ""),
            Self::Resource(Some(uri)) => ("resources", uri.as_str(), ""),
            Self::Resource(None) => ("templates", "", ""),
            Self::Prompt(name) => ("prompts", name.as_str(), ""),
            Self::Completion(
                CompletionTarget::Prompt(target) | CompletionTarget::Resource(target),
                argument,
            ) => ("completions", target.as_str(), argument.as_str()),
        };
        NativeSubject {
            part: part.to_owned(),
            kind,
            key: key.to_owned(),
            argument: argument.to_owned(),
        }
    }
}

/// Members of `_meta` that belong to a connection, and are not passed on.
const OWN_META: [&str; 2] = ["progressToken", "io.modelcontextprotocol/"];

/// Returns a handler that passes calls on.
pub(super) fn handler(connections: &Arc<Connections>, subject: Subject) -> Handler {
    let native = subject.native(connections.name());
    let on_subscribed: Option<Arc<OnSubscribed>> = match &subject {
        Subject::Resource(None) => {
            let events = Arc::clone(&connections.events);
            Some(Arc::new(move |uri| events.subscribed(uri)))
        }
        _ => None,
    };
    let (connections, subject) = (Arc::clone(connections), Arc::new(subject));
    native_handler(native, on_subscribed, move |input, context| {
        let (connections, subject) = (Arc::clone(&connections), Arc::clone(&subject));
        Box::pin(async move { pass_on(&connections, &subject, input, context).await })
    })
}

async fn pass_on(
    connections: &Arc<Connections>,
    subject: &Subject,
    input: String,
    context: Context,
) -> Result<Reply, Failure> {
    let operation = operation(subject, input)?;
    let uri = match &operation {
        Operation::ReadResource { uri, .. } => Some(uri.clone()),
        _ => None,
    };
    let failed = |error: Error| failure(connections.name(), subject, uri.as_deref(), &error);
    let lease = connections.lease(&context).await.map_err(failed)?;
    let options = options(&lease.client, &context, lease.asking.as_ref());
    let outcome = lease.client.call(operation, options).await;
    let result = outcome.map_err(|error| {
        let unanswered = lease.asking.as_ref().and_then(Asking::take_failure);
        unanswered.unwrap_or_else(|| failed(error))
    })?;
    let text = without_own_meta(result.result);
    Ok(Reply::Result(match subject {
        Subject::Completion(..) => format!(r#"{{"completion":{text}}}"#),
        _ => text,
    }))
}

fn operation(subject: &Subject, input: String) -> Result<Operation, Failure> {
    Ok(match subject.clone() {
        Subject::Tool(name) => Operation::CallTool { name, arguments: Some(json::raw(input)) },
        Subject::Resource(Some(uri)) => Operation::ReadResource { uri, variables: None },
        Subject::Resource(None) => {
            Operation::ReadResource { uri: read::<AtUri>(&input)?.uri, variables: None }
        }
        Subject::Prompt(name) => Operation::GetPrompt { name, arguments: Some(json::raw(input)) },
        Subject::Completion(target, argument) => {
            let Typed { value, arguments } = read(&input)?;
            Operation::Complete { target, argument, value, given: Some(arguments) }
        }
    })
}

#[derive(serde::Deserialize)]
struct AtUri {
    uri: String,
}

#[derive(serde::Deserialize)]
struct Typed {
    value: String,
    arguments: Raw,
}

fn read<T: for<'de> serde::Deserialize<'de>>(input: &str) -> Result<T, Failure> {
    serde_json::from_str(input).map_err(|error| Failure::Invalid(error.to_string()))
}

fn options(client: &Client, context: &Context, asking: Option<&Asking>) -> CallOptions {
    let names_capabilities = client.server().spoken().is_stateless;
    let mut options = client.options();
    options.raise_on_error = false;
    options.is_passed_on = true;
    options.questioner = asking.map(Asking::questioner);
    context.with_request(|request| {
        let capabilities = names_capabilities.then(|| asked_by(request));
        options.meta = passed_meta(request.meta.as_ref(), capabilities);
        if request.wants_progress {
            let context = context.clone();
            options.on_progress = Some(Arc::new(move |step| {
                context.progress(step.progress, step.total, step.message.as_deref());
            }));
        }
    });
    options
}

/// Returns the part of a call's `_meta` that is not about its connection, with the capabilities of its client where they are
/// part of `_meta`.
fn passed_meta(meta: Option<&Raw>, capabilities: Option<ClientCapabilities>) -> Option<Raw> {
    let read = |meta: &Raw| serde_json::from_str::<Members<Raw>>(meta.get()).ok();
    let mut members = meta.and_then(read).map_or_else(Vec::new, |members| members.0);
    let is_own = |name: &str| OWN_META.iter().any(|own| name.starts_with(own));
    members.retain(|(name, _)| !is_own(name));
    let declared = capabilities.map(|declared| json::to_raw(&declared));
    members.extend(declared.map(|declared| (meta::CLIENT_CAPABILITIES.to_owned(), declared)));
    (!members.is_empty()).then(|| json::to_raw(&Members(members)))
}

/// Returns the capabilities that the client of a call has to answer questions.
fn asked_by(request: &CallContext) -> ClientCapabilities {
    let declared = request.client.capabilities.as_ref();
    let declared: Option<ClientCapabilities> =
        declared.and_then(|declared| serde_json::from_str(declared.get()).ok());
    let ClientCapabilities { roots, sampling, elicitation, .. } = declared.unwrap_or_default();
    let roots = roots.map(|_| RootsCapability::default());
    ClientCapabilities { roots, sampling, elicitation, ..ClientCapabilities::default() }
}

/// Returns a result without what it says about the server that it came from. Others are not written again.
fn without_own_meta(result: Raw) -> String {
    let text = result.get();
    if !text.contains(meta::SERVER_INFO) {
        return String::from(Box::<str>::from(result));
    }
    let Ok((rest, Some(meta))) = json::apart(text, "_meta") else { return text.to_owned() };
    let mut result = json::ObjectWriter::with_capacity(text.len());
    result.splice(&rest);
    if let Some(meta) = router::without_own(&meta) {
        result.raw("_meta", meta.get());
    }
    result.finish()
}

/// Returns the failure of a call that its server refused, or never got. `uri` is that of a resource.
fn failure(server: &str, subject: &Subject, uri: Option<&str>, error: &Error) -> Failure {
    let message = error.message.clone();
    match (error.kind, error.code, uri) {
        (ErrorKind::Cancelled, None, _) => Failure::Cancelled,
        (ErrorKind::NotFound, _, Some(uri)) => {
            Failure::NotFound { uri: uri.to_owned(), message: Some(message) }
        }
        (_, Some(code), _) => Failure::Protocol { code, message, data: error.data.clone() },
        (_, None, _) => {
            let hint = error.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
            let message = format!("the upstream server {server:?} failed: {message}{hint}");
            match subject {
                Subject::Tool(_) => Failure::Tool { message, meta: None },
                _ => Failure::Exposed(message),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn not_found() -> Error {
        let mut error = Error::new(ErrorKind::NotFound, "it is gone");
        error.code = Some(-32_002);
        error
    }

    #[test]
    fn a_resource_that_is_not_found_is_named_although_its_server_does_not_name_it() {
        let uri = "shelf://books/7";
        let failed = failure("shelf", &Subject::Resource(None), Some(uri), &not_found());
        assert!(
            matches!(&failed, Failure::NotFound { uri: named, .. } if named == uri),
            "{failed:?}"
        );
    }

    #[test]
    fn what_is_no_resource_fails_with_the_code_of_its_server() {
        let failed = failure("shelf", &Subject::Prompt("review".into()), None, &not_found());
        assert!(matches!(failed, Failure::Protocol { code: -32_002, .. }), "{failed:?}");
    }
}
