//! From a request to its answer, or to the handler that makes it: one line a method.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{
    Handler, MiddlewareFrame, Offers, Page, Prepared, Reading, Registry, Resolution, ResultBuilder,
    Visibility, completion, middleware, offer::Offer, resource, resource::ReadHint,
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        CacheHint, CacheScope, CompleteRequest, CompletionTarget, Listing, Method, MethodName,
        Principal, Raw, Request, Response, SubscriptionFilter,
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
    pub result_builder: ResultBuilder,
    pub timeout: Option<Duration>,
    /// Middleware is to be run around the handler.
    pub middleware_frame: Option<Box<MiddlewareFrame>>,
}

impl Job {
    pub(super) fn new(handler: Handler, input: String, result_builder: ResultBuilder) -> Self {
        Self { handler, input, result_builder, timeout: None, middleware_frame: None }
    }

    fn within(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }
}

/// Whom an answer is for.
#[derive(Clone, Copy)]
pub struct RequestScope<'a> {
    /// Which offers there are for it.
    pub visibility: &'a Visibility,
    pub principal: Option<&'a Principal>,
    /// The HTTP request's.
    pub headers: Option<&'a HeaderMap>,
    /// Whether these must agree with the arguments.
    pub checks_headers: bool,
    pub cursors: &'a dyn Cursors,
    /// The request's params, for a handler that answers in the router's place.
    pub raw_params: Option<&'a Raw>,
}

impl RequestScope<'_> {
    /// Whether a handler can know who asks: what it reads may then be nobody else's. Caches for all treat HTTP's own
    /// credentials alike (RFC 9111, section 3.5).
    fn is_somebodys(self) -> bool {
        self.principal.is_some() || self.headers.is_some_and(|it| it.contains_key(AUTHORIZATION))
    }

    /// What clients are told of how long, and by whom, a result may be kept.
    fn hint(self, read: ReadHint, offer: &impl Offer) -> CacheHint {
        let said = read.scope.map(|it| it == CacheScope::Private);
        // What not everybody sees must not come to everybody out of a cache on the way.
        let private =
            offer.options().visible.is_some() || said.unwrap_or_else(|| self.is_somebodys());
        CacheHint { ttl_ms: read.ttl_ms, private }
    }
}

/// Makes cursors of places in lists: nobody else can, and one of another list is none.
pub trait Cursors {
    /// For the page that begins after this entry.
    fn seal(&self, list: &str, after: u64) -> String;
    /// `None`: it was not made here.
    fn open(&self, list: &str, cursor: &str) -> Option<u64>;
}

/// Answers a request, or finds who does.
pub fn dispatch(offers: &Offers, request: Request, scope: RequestScope<'_>) -> Dispatch {
    let wanting = offers.middleware.as_ref().filter(|it| it.wants(&request.method()));
    let Some(middleware) = wanting else { return answer(offers, request, scope) };
    let seen = request.clone();
    let resolution = match answer(offers, request, scope) {
        Dispatch::Run(mut job) => {
            // Middleware must see every read, so none is answered from what was kept.
            if let ResultBuilder::Resource(reading) = &mut job.result_builder {
                reading.keep = None;
            }
            if middleware.wraps_handlers {
                job.middleware_frame =
                    Some(Box::new(MiddlewareFrame::new(middleware, &seen, &job)));
            }
            return Dispatch::Run(job);
        }
        Dispatch::Answer(answer) => Resolution::Answer(answer),
        Dispatch::Listen(filter) => Resolution::Listen(filter),
    };
    let description = Arc::new(offers.describe());
    Dispatch::Run(middleware.prepared(&seen, description, resolution, scope.is_somebodys()))
}

fn answer(offers: &Offers, request: Request, scope: RequestScope<'_>) -> Dispatch {
    let visibility = scope.visibility;
    if let Some(job) = replaced(offers, &request, scope) {
        return run(job);
    }
    let answer = match request {
        Request::Initialize(_) | Request::Discover => {
            Ok(Response::Description(Arc::new(offers.describe())))
        }
        Request::Ping | Request::SetLevel { .. } | Request::Unsubscribe { .. } => {
            Ok(Response::Empty)
        }
        Request::ListTools { cursor } => {
            list(offers, &offers.tools, Method::ListTools, cursor.as_deref(), scope)
                .map(Response::Tools)
        }
        Request::ListPrompts { cursor } => {
            list(offers, &offers.prompts, Method::ListPrompts, cursor.as_deref(), scope)
                .map(Response::Prompts)
        }
        Request::ListResources { cursor } => {
            list(offers, &offers.resources, Method::ListResources, cursor.as_deref(), scope)
                .map(Response::Resources)
        }
        Request::ListResourceTemplates { cursor } => {
            let method = Method::ListResourceTemplates;
            list(offers, &offers.templates, method, cursor.as_deref(), scope)
                .map(Response::ResourceTemplates)
        }
        Request::ListWhole { list } => Ok(whole(offers, list, visibility)),
        Request::CallTool { name, arguments, .. } => {
            return run(call_tool(offers, &name, arguments.as_ref(), scope));
        }
        Request::ReadResource { uri, variables, .. } => {
            let uri = resource::filled(offers, uri, variables.as_ref(), visibility);
            return run(uri.and_then(|uri| read_resource(offers, uri, scope)));
        }
        Request::GetPrompt { name, arguments, .. } => {
            return run(get_prompt(offers, &name, arguments, visibility));
        }
        Request::Complete(request) => return complete(offers, request, visibility),
        Request::Subscribe { uri } => match offers.has_resource(&uri, visibility) {
            true => Ok(Response::Empty),
            false => Err(resource::not_found(&uri, None)),
        },
        Request::Listen { notifications } => {
            return Dispatch::Listen(offers.honoured(notifications, visibility));
        }
        Request::Other { method, params } => return run(other(offers, &method, params)),
    };
    Dispatch::Answer(answer)
}

fn run(job: Result<Job, Fault>) -> Dispatch {
    job.map_or_else(|fault| Dispatch::Answer(Err(fault)), Dispatch::Run)
}

/// A server without tools has no `tools/list` either: it did not declare the capability. Resources and templates are one.
fn list<T: Offer>(
    offers: &Offers,
    registry: &Registry<T>,
    method: Method,
    cursor: Option<&str>,
    scope: RequestScope<'_>,
) -> Result<Listing<T::Listed>, Fault> {
    let is_declared = match method {
        Method::ListResources | Method::ListResourceTemplates => {
            !offers.resources.is_empty() || !offers.templates.is_empty()
        }
        _ => !registry.is_empty(),
    };
    if !is_declared {
        return Err(Fault::unknown_method(method.as_str()));
    }
    let after = match cursor {
        None => None,
        Some(cursor) => {
            let place = scope.cursors.open(registry.kind(), cursor);
            let place = place.filter(|it| registry.has_place(*it));
            Some(place.ok_or_else(|| Fault::invalid_params("invalid cursor"))?)
        }
    };
    let Page { items, spellings, next } =
        registry.page(after, offers.server.page_size, scope.visibility);
    let next_cursor = next.map(|it| scope.cursors.seal(registry.kind(), it));
    let cache = CacheHint { private: registry.is_guarded(), ..offers.list_hint() };
    Ok(Listing { items, spellings, next_cursor, cache, meta: None })
}

/// Everything of one list, for whoever does not turn pages.
fn whole(offers: &Offers, list: Method, visibility: &Visibility) -> Response {
    match list {
        Method::ListTools => Response::Tools(Listing::whole(listed(&offers.tools, visibility))),
        Method::ListPrompts => {
            Response::Prompts(Listing::whole(listed(&offers.prompts, visibility)))
        }
        _ => Response::AllResources {
            resources: listed(&offers.resources, visibility).collect(),
            templates: listed(&offers.templates, visibility).collect(),
        },
    }
}

fn listed<'a, T: Offer>(
    registry: &'a Registry<T>,
    visibility: &'a Visibility,
) -> impl Iterator<Item = Arc<T::Listed>> {
    registry.visible(visibility).map(|it| Arc::clone(it.listed()))
}

fn call_tool(
    offers: &Offers,
    name: &str,
    arguments: Option<&Raw>,
    scope: RequestScope<'_>,
) -> Result<Job, Fault> {
    let offer = offers
        .tools
        .seen(name, scope.visibility)
        .ok_or_else(|| Fault::new(FaultKind::UnknownTool, format!("Unknown tool: {name}")))?;
    let given = arguments.map_or("{}", |it| it.get());
    if let Some(headers) = scope.headers.filter(|_| scope.checks_headers) {
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
    let result_builder = ResultBuilder::Tool(Arc::clone(offer));
    Ok(Job::new(Arc::clone(&offer.handler), input, result_builder).within(offer.options.timeout))
}

/// What reads this URI, for a handler of the server's own.
pub fn find_resource(offers: &Offers, uri: String, visibility: &Visibility) -> Result<Job, Fault> {
    let scope = RequestScope {
        visibility,
        principal: None,
        headers: None,
        checks_headers: false,
        cursors: &NoPages,
        raw_params: None,
    };
    read_resource(offers, uri, scope)
}

/// Of who reads no lists.
struct NoPages;

impl Cursors for NoPages {
    fn seal(&self, _: &str, _: u64) -> String {
        String::new()
    }

    fn open(&self, _: &str, _: &str) -> Option<u64> {
        None
    }
}

fn read_resource(offers: &Offers, uri: String, scope: RequestScope<'_>) -> Result<Job, Fault> {
    let visibility = scope.visibility;
    if let Some(offer) = offers.resources.seen(&uri, visibility) {
        let mime_type = offer.resource.mime_type.clone();
        let cache = scope.hint(offer.cache, &**offer);
        let reading = Reading { uri, mime_type, cache, keep: offer.keep };
        let result_builder = ResultBuilder::Resource(Box::new(reading));
        let job = Job::new(Arc::clone(&offer.handler), "{}".into(), result_builder);
        return Ok(job.within(offer.options.timeout));
    }
    let mut templates = offers.templates.visible(visibility);
    let found = templates.find_map(|it| it.uri.match_uri(&uri).map(|values| (it, values)));
    let Some((offer, variables)) = found else { return Err(resource::not_found(&uri, None)) };
    let variables: serde_json::Map<String, Value> = variables.into_iter().collect();
    let mime_type = offer.template.mime_type.clone();
    let cache = scope.hint(offer.cache, &**offer);
    let reading = Reading { uri, mime_type, cache, keep: offer.keep };
    let result_builder = ResultBuilder::Resource(Box::new(reading));
    let input = Value::Object(variables).to_string();
    Ok(Job::new(Arc::clone(&offer.handler), input, result_builder).within(offer.options.timeout))
}

fn get_prompt(
    offers: &Offers,
    name: &str,
    arguments: Vec<(String, String)>,
    visibility: &Visibility,
) -> Result<Job, Fault> {
    let offer = offers
        .prompts
        .seen(name, visibility)
        .ok_or_else(|| Fault::invalid_params(format!("Unknown prompt: {name}")))?;
    offer.check(&arguments)?;
    let (input, result_builder) =
        (object(arguments).to_string(), ResultBuilder::Prompt(Arc::clone(offer)));
    Ok(Job::new(Arc::clone(&offer.handler), input, result_builder).within(offer.options.timeout))
}

/// A target that exists and has no completion for the argument has nothing to suggest.
fn complete(offers: &Offers, request: CompleteRequest, visibility: &Visibility) -> Dispatch {
    let found = completion::find(offers, &request.target, &request.argument, visibility);
    // Nothing that it would complete was declared (Completion, "Error Handling").
    if !matches!(found, Ok(Some(_))) && !completion::any(offers) {
        return Dispatch::Answer(Err(Fault::unknown_method(Method::Complete.as_str())));
    }
    let Ok(found) = found else {
        let (CompletionTarget::Prompt(name) | CompletionTarget::Resource(name)) = request.target;
        return Dispatch::Answer(Err(Fault::invalid_params(format!(
            "nothing to complete: {name} is not offered"
        ))));
    };
    match found {
        None => Dispatch::Answer(Ok(Response::Completion {
            values: Vec::new(),
            total: None,
            has_more: false,
            meta: None,
        })),
        Some(found) => {
            let input = json!({ "value": request.value, "arguments": object(request.given) });
            let handler = Arc::clone(found);
            Dispatch::Run(Job::new(handler, input.to_string(), ResultBuilder::Completion))
        }
    }
}

/// A vendor's method.
fn other(offers: &Offers, method: &MethodName, params: Raw) -> Result<Job, Fault> {
    let found =
        offers.method(method.as_str()).ok_or_else(|| Fault::unknown_method(method.as_str()))?;
    check_params(offers, method.as_str(), params.get())?;
    let result_builder = ResultBuilder::Method(Box::new(method.clone()));
    Ok(Job::new(Arc::clone(found), String::from(Box::<str>::from(params)), result_builder))
}

/// A method of the specification that a handler answers in the router's place.
fn replaced(
    offers: &Offers,
    request: &Request,
    scope: RequestScope<'_>,
) -> Option<Result<Job, Fault>> {
    let name = request.method();
    let MethodName::Standard(_) = name else { return None };
    let handler = offers.method(name.as_str())?;
    let params =
        scope.raw_params.map_or_else(|| middleware::params(request), |it| it.get().to_owned());
    if let Err(fault) = check_params(offers, name.as_str(), &params) {
        return Some(Err(fault));
    }
    let description = Arc::new(offers.describe());
    let prepared = Prepared::replaced(name, &params, description, scope.is_somebodys());
    Some(Ok(Job::new(Arc::clone(handler), params, ResultBuilder::Prepared(Arc::new(prepared)))))
}

fn check_params(offers: &Offers, method: &str, params: &str) -> Result<(), Fault> {
    let Some(schema) = offers.params.get(method) else { return Ok(()) };
    let given = serde_json::from_str(params).unwrap_or_default();
    schema.check(&given).map_err(|it| Fault::invalid_params(format!("Invalid params: {it}")))
}

fn object(members: Vec<(String, String)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
}
