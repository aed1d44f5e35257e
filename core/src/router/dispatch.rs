//! From a request to its answer, or to the handler that makes it: one line a method.

use std::{sync::Arc, time::Duration};

use http::HeaderMap;
use serde_json::{Value, json};

use super::{Finish, Handler, Offers, Registry, registry::Offer, resource};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        CompleteRequest, CompletionTarget, Listing, Method, Raw, Request, Response,
        SubscriptionFilter,
    },
    schema::Checked,
    wire,
};

/// What is to be done about a request.
#[derive(Debug)]
pub enum Dispatch {
    Answer(Result<Response, Fault>),
    /// The client listens from now on, to what is honoured of its filter.
    Listen(SubscriptionFilter),
    Run(Job),
}

/// A handler to be run.
#[derive(Debug)]
pub struct Job {
    pub handler: Handler,
    /// What it is given: a JSON object.
    pub input: String,
    pub finish: Finish,
    pub timeout: Option<Duration>,
}

/// Answers a request, or finds who does. `headers` are the HTTP request's, where they must agree with the arguments.
pub fn dispatch(offers: &Offers, request: Request, headers: Option<&HeaderMap>) -> Dispatch {
    let answer = match request {
        Request::Initialize(_) | Request::Discover => {
            Ok(Response::Description(Arc::new(offers.describe())))
        }
        Request::Ping | Request::SetLevel { .. } | Request::Unsubscribe { .. } => {
            Ok(Response::Empty)
        }
        Request::ListTools { cursor } => {
            page(offers, &offers.tools, Method::ListTools, cursor.as_deref()).map(Response::Tools)
        }
        Request::ListPrompts { cursor } => {
            page(offers, &offers.prompts, Method::ListPrompts, cursor.as_deref())
                .map(Response::Prompts)
        }
        Request::ListResources { cursor } => {
            resources(offers, &offers.resources, Method::ListResources, cursor.as_deref())
                .map(Response::Resources)
        }
        Request::ListResourceTemplates { cursor } => {
            resources(offers, &offers.templates, Method::ListResourceTemplates, cursor.as_deref())
                .map(Response::ResourceTemplates)
        }
        Request::ListWhole { list } => Ok(whole(offers, list)),
        Request::CallTool { name, arguments, .. } => {
            return run(call_tool(offers, &name, arguments.as_ref(), headers));
        }
        Request::ReadResource { uri, variables, .. } => {
            let uri = resource::filled(offers, uri, variables.as_ref());
            return run(uri.and_then(|uri| read_resource(offers, uri)));
        }
        Request::GetPrompt { name, arguments, .. } => {
            return run(get_prompt(offers, &name, arguments));
        }
        Request::Complete(request) => return complete(offers, request),
        Request::Subscribe { uri } => match offers.has_resource(&uri) {
            true => Ok(Response::Empty),
            false => Err(resource::not_found(&uri, None)),
        },
        Request::Listen { notifications } => {
            return Dispatch::Listen(offers.honoured(notifications));
        }
        Request::Other { method, params } => return run(other(offers, method.as_str(), params)),
    };
    Dispatch::Answer(answer)
}

fn run(job: Result<Job, Fault>) -> Dispatch {
    job.map_or_else(|fault| Dispatch::Answer(Err(fault)), Dispatch::Run)
}

/// A server without tools has no `tools/list` either: it did not declare the capability.
fn page<T: Offer>(
    offers: &Offers,
    registry: &Registry<T>,
    method: Method,
    cursor: Option<&str>,
) -> Result<Listing<T::Listed>, Fault> {
    match registry.is_empty() {
        true => Err(Fault::unknown_method(method.as_str())),
        false => registry.page(cursor, offers.server.page_size, offers.list_hint()),
    }
}

/// Resources and templates are one capability.
fn resources<T: Offer>(
    offers: &Offers,
    registry: &Registry<T>,
    method: Method,
    cursor: Option<&str>,
) -> Result<Listing<T::Listed>, Fault> {
    match offers.resources.is_empty() && offers.templates.is_empty() {
        true => Err(Fault::unknown_method(method.as_str())),
        false => registry.page(cursor, offers.server.page_size, offers.list_hint()),
    }
}

/// Everything of one list, for whoever does not turn pages.
fn whole(offers: &Offers, list: Method) -> Response {
    match list {
        Method::ListTools => Response::Tools(offers.tools.whole()),
        Method::ListPrompts => Response::Prompts(offers.prompts.whole()),
        _ => Response::AllResources {
            resources: offers.resources.whole().items,
            templates: offers.templates.whole().items,
        },
    }
}

fn call_tool(
    offers: &Offers,
    name: &str,
    arguments: Option<&Raw>,
    headers: Option<&HeaderMap>,
) -> Result<Job, Fault> {
    let offer = offers
        .tools
        .get(name)
        .ok_or_else(|| Fault::new(FaultKind::UnknownTool, format!("Unknown tool: {name}")))?;
    let given = arguments.map_or("{}", |it| it.get());
    if let Some(headers) = headers {
        wire::check_params(headers, &offer.mirrored, given)?;
    }
    let input = match offer.input.check_arguments(given) {
        Ok(Checked::AsGiven) => given.to_owned(),
        Ok(Checked::Decoded(arguments)) => arguments,
        Err(violation) => {
            let message = format!("Invalid arguments for tool {name:?}: {violation}");
            return Err(Fault::new(FaultKind::InvalidArguments, message));
        }
    };
    Ok(Job {
        handler: Arc::clone(&offer.handler),
        input,
        timeout: offer.timeout,
        finish: Finish::Tool(Arc::clone(offer)),
    })
}

fn read_resource(offers: &Offers, uri: String) -> Result<Job, Fault> {
    if let Some(offer) = offers.resources.get(&uri) {
        return Ok(Job {
            handler: Arc::clone(&offer.handler),
            input: "{}".into(),
            timeout: offer.timeout,
            finish: Finish::Resource {
                uri,
                mime_type: offer.resource.mime_type.clone(),
                cache: offer.cache,
            },
        });
    }
    let found =
        offers.templates.iter().find_map(|it| it.uri.match_uri(&uri).map(|values| (it, values)));
    let Some((offer, variables)) = found else { return Err(resource::not_found(&uri, None)) };
    let variables: serde_json::Map<String, Value> = variables.into_iter().collect();
    Ok(Job {
        handler: Arc::clone(&offer.handler),
        input: Value::Object(variables).to_string(),
        timeout: offer.timeout,
        finish: Finish::Resource {
            uri,
            mime_type: offer.template.mime_type.clone(),
            cache: offer.cache,
        },
    })
}

fn get_prompt(offers: &Offers, name: &str, arguments: Vec<(String, String)>) -> Result<Job, Fault> {
    let offer = offers
        .prompts
        .get(name)
        .ok_or_else(|| Fault::invalid_params(format!("Unknown prompt: {name}")))?;
    offer.check(&arguments)?;
    Ok(Job {
        handler: Arc::clone(&offer.handler),
        input: object(arguments).to_string(),
        timeout: offer.timeout,
        finish: Finish::Prompt(Arc::clone(offer)),
    })
}

/// A target that exists and has no completion for the argument has nothing to suggest.
fn complete(offers: &Offers, request: CompleteRequest) -> Dispatch {
    let exists = match &request.target {
        CompletionTarget::Prompt(name) => offers.prompts.get(name).is_some(),
        CompletionTarget::Resource(uri) => {
            offers.templates.get(uri).is_some() || offers.resources.get(uri).is_some()
        }
    };
    if !exists {
        let (CompletionTarget::Prompt(name) | CompletionTarget::Resource(name)) = request.target;
        return Dispatch::Answer(Err(Fault::invalid_params(format!(
            "nothing to complete: {name} is not offered"
        ))));
    }
    match offers.completion(&request.target, &request.argument) {
        None => Dispatch::Answer(Ok(Response::Completion {
            values: Vec::new(),
            total: None,
            has_more: false,
        })),
        Some(found) => Dispatch::Run(Job {
            handler: Arc::clone(found),
            input: json!({ "value": request.value, "arguments": object(request.given) })
                .to_string(),
            timeout: None,
            finish: Finish::Completion,
        }),
    }
}

fn other(offers: &Offers, method: &str, params: Raw) -> Result<Job, Fault> {
    let found = offers.method(method).ok_or_else(|| Fault::unknown_method(method))?;
    Ok(Job {
        handler: Arc::clone(found),
        input: String::from(Box::<str>::from(params)),
        timeout: None,
        finish: Finish::Method,
    })
}

fn object(members: Vec<(String, String)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
}
