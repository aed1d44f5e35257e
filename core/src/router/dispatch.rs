//! From a request to its answer, or to the handler that makes it: one line a method.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{
    Concluded, Finish, Handler, Offers, Page, Passage, Prepared, Reading, Registry, Sight,
    completion, middleware, offer::Offer, resource, resource::ReadHint,
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
    pub finish: Finish,
    pub timeout: Option<Duration>,
    /// Middleware is to be run around the handler.
    pub passage: Option<Box<Passage>>,
}

impl Job {
    pub(super) fn new(handler: Handler, input: String, finish: Finish) -> Self {
        Self { handler, input, finish, timeout: None, passage: None }
    }

    fn within(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }
}

/// Whom an answer is for.
#[derive(Clone, Copy)]
pub struct Seeing<'a> {
    /// Which offers there are for it.
    pub sight: &'a Sight,
    pub principal: Option<&'a Principal>,
    /// The HTTP request's.
    pub headers: Option<&'a HeaderMap>,
    /// Whether these must agree with the arguments.
    pub checks_headers: bool,
    pub cursors: &'a dyn Cursors,
    /// The request's params, for a handler that answers in the router's place.
    pub raw_params: Option<&'a Raw>,
}

impl Seeing<'_> {
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
pub fn dispatch(offers: &Offers, request: Request, seeing: Seeing<'_>) -> Dispatch {
    let wanting = offers.middleware.as_ref().filter(|it| it.wants(&request.method()));
    let Some(middleware) = wanting else { return answer(offers, request, seeing) };
    let seen = request.clone();
    let concluded = match answer(offers, request, seeing) {
        Dispatch::Run(mut job) => {
            // Middleware must see every read, so none is answered from what was kept.
            if let Finish::Resource(reading) = &mut job.finish {
                reading.keep = None;
            }
            if middleware.wraps_handlers {
                job.passage = Some(Box::new(Passage::new(middleware, &seen, &job)));
            }
            return Dispatch::Run(job);
        }
        Dispatch::Answer(answer) => Concluded::Answer(answer),
        Dispatch::Listen(filter) => Concluded::Listen(filter),
    };
    let description = Arc::new(offers.describe());
    Dispatch::Run(middleware.prepared(&seen, description, concluded, seeing.is_somebodys()))
}

fn answer(offers: &Offers, request: Request, seeing: Seeing<'_>) -> Dispatch {
    let sight = seeing.sight;
    if let Some(job) = replaced(offers, &request, seeing) {
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
            list(offers, &offers.tools, Method::ListTools, cursor.as_deref(), seeing)
                .map(Response::Tools)
        }
        Request::ListPrompts { cursor } => {
            list(offers, &offers.prompts, Method::ListPrompts, cursor.as_deref(), seeing)
                .map(Response::Prompts)
        }
        Request::ListResources { cursor } => {
            list(offers, &offers.resources, Method::ListResources, cursor.as_deref(), seeing)
                .map(Response::Resources)
        }
        Request::ListResourceTemplates { cursor } => {
            let method = Method::ListResourceTemplates;
            list(offers, &offers.templates, method, cursor.as_deref(), seeing)
                .map(Response::ResourceTemplates)
        }
        Request::ListWhole { list } => Ok(whole(offers, list, sight)),
        Request::CallTool { name, arguments, .. } => {
            return run(call_tool(offers, &name, arguments.as_ref(), seeing));
        }
        Request::ReadResource { uri, variables, .. } => {
            let uri = resource::filled(offers, uri, variables.as_ref(), sight);
            return run(uri.and_then(|uri| read_resource(offers, uri, seeing)));
        }
        Request::GetPrompt { name, arguments, .. } => {
            return run(get_prompt(offers, &name, arguments, sight));
        }
        Request::Complete(request) => return complete(offers, request, sight),
        Request::Subscribe { uri } => match offers.has_resource(&uri, sight) {
            true => Ok(Response::Empty),
            false => Err(resource::not_found(&uri, None)),
        },
        Request::Listen { notifications } => {
            return Dispatch::Listen(offers.honoured(notifications, sight));
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
    seeing: Seeing<'_>,
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
            let place = seeing.cursors.open(registry.kind(), cursor);
            let place = place.filter(|it| registry.has_place(*it));
            Some(place.ok_or_else(|| Fault::invalid_params("invalid cursor"))?)
        }
    };
    let Page { items, spellings, next } =
        registry.page(after, offers.server.page_size, seeing.sight);
    let next_cursor = next.map(|it| seeing.cursors.seal(registry.kind(), it));
    let cache = CacheHint { private: registry.is_guarded(), ..offers.list_hint() };
    Ok(Listing { items, spellings, next_cursor, cache, meta: None })
}

/// Everything of one list, for whoever does not turn pages.
fn whole(offers: &Offers, list: Method, sight: &Sight) -> Response {
    match list {
        Method::ListTools => Response::Tools(Listing::whole(listed(&offers.tools, sight))),
        Method::ListPrompts => Response::Prompts(Listing::whole(listed(&offers.prompts, sight))),
        _ => Response::AllResources {
            resources: listed(&offers.resources, sight).collect(),
            templates: listed(&offers.templates, sight).collect(),
        },
    }
}

fn listed<'a, T: Offer>(
    registry: &'a Registry<T>,
    sight: &'a Sight,
) -> impl Iterator<Item = Arc<T::Listed>> {
    registry.visible(sight).map(|it| Arc::clone(it.listed()))
}

fn call_tool(
    offers: &Offers,
    name: &str,
    arguments: Option<&Raw>,
    seeing: Seeing<'_>,
) -> Result<Job, Fault> {
    let offer = offers
        .tools
        .seen(name, seeing.sight)
        .ok_or_else(|| Fault::new(FaultKind::UnknownTool, format!("Unknown tool: {name}")))?;
    let given = arguments.map_or("{}", |it| it.get());
    if let Some(headers) = seeing.headers.filter(|_| seeing.checks_headers) {
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
    let finish = Finish::Tool(Arc::clone(offer));
    Ok(Job::new(Arc::clone(&offer.handler), input, finish).within(offer.options.timeout))
}

/// What reads this URI, for a handler of the server's own.
pub fn find_resource(offers: &Offers, uri: String, sight: &Sight) -> Result<Job, Fault> {
    let seeing = Seeing {
        sight,
        principal: None,
        headers: None,
        checks_headers: false,
        cursors: &NoPages,
        raw_params: None,
    };
    read_resource(offers, uri, seeing)
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

fn read_resource(offers: &Offers, uri: String, seeing: Seeing<'_>) -> Result<Job, Fault> {
    let sight = seeing.sight;
    if let Some(offer) = offers.resources.seen(&uri, sight) {
        let mime_type = offer.resource.mime_type.clone();
        let cache = seeing.hint(offer.cache, &**offer);
        let reading = Reading { uri, mime_type, cache, keep: offer.keep };
        let finish = Finish::Resource(Box::new(reading));
        let job = Job::new(Arc::clone(&offer.handler), "{}".into(), finish);
        return Ok(job.within(offer.options.timeout));
    }
    let mut templates = offers.templates.visible(sight);
    let found = templates.find_map(|it| it.uri.match_uri(&uri).map(|values| (it, values)));
    let Some((offer, variables)) = found else { return Err(resource::not_found(&uri, None)) };
    let variables: serde_json::Map<String, Value> = variables.into_iter().collect();
    let mime_type = offer.template.mime_type.clone();
    let cache = seeing.hint(offer.cache, &**offer);
    let reading = Reading { uri, mime_type, cache, keep: offer.keep };
    let finish = Finish::Resource(Box::new(reading));
    let input = Value::Object(variables).to_string();
    Ok(Job::new(Arc::clone(&offer.handler), input, finish).within(offer.options.timeout))
}

fn get_prompt(
    offers: &Offers,
    name: &str,
    arguments: Vec<(String, String)>,
    sight: &Sight,
) -> Result<Job, Fault> {
    let offer = offers
        .prompts
        .seen(name, sight)
        .ok_or_else(|| Fault::invalid_params(format!("Unknown prompt: {name}")))?;
    offer.check(&arguments)?;
    let (input, finish) = (object(arguments).to_string(), Finish::Prompt(Arc::clone(offer)));
    Ok(Job::new(Arc::clone(&offer.handler), input, finish).within(offer.options.timeout))
}

/// A target that exists and has no completion for the argument has nothing to suggest.
fn complete(offers: &Offers, request: CompleteRequest, sight: &Sight) -> Dispatch {
    let found = completion::find(offers, &request.target, &request.argument, sight);
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
            Dispatch::Run(Job::new(handler, input.to_string(), Finish::Completion))
        }
    }
}

/// A vendor's method.
fn other(offers: &Offers, method: &MethodName, params: Raw) -> Result<Job, Fault> {
    let found =
        offers.method(method.as_str()).ok_or_else(|| Fault::unknown_method(method.as_str()))?;
    check_params(offers, method.as_str(), params.get())?;
    let finish = Finish::Method(Box::new(method.clone()));
    Ok(Job::new(Arc::clone(found), String::from(Box::<str>::from(params)), finish))
}

/// A method of the specification that a handler answers in the router's place.
fn replaced(offers: &Offers, request: &Request, seeing: Seeing<'_>) -> Option<Result<Job, Fault>> {
    let name = request.method();
    let MethodName::Standard(_) = name else { return None };
    let handler = offers.method(name.as_str())?;
    let params =
        seeing.raw_params.map_or_else(|| middleware::params(request), |it| it.get().to_owned());
    if let Err(fault) = check_params(offers, name.as_str(), &params) {
        return Some(Err(fault));
    }
    let description = Arc::new(offers.describe());
    let prepared = Prepared::replaced(name, &params, description, seeing.is_somebodys());
    Some(Ok(Job::new(Arc::clone(handler), params, Finish::Prepared(Arc::new(prepared)))))
}

fn check_params(offers: &Offers, method: &str, params: &str) -> Result<(), Fault> {
    let Some(schema) = offers.params.get(method) else { return Ok(()) };
    let given = serde_json::from_str(params).unwrap_or_default();
    schema.check(&given).map_err(|it| Fault::invalid_params(format!("Invalid params: {it}")))
}

fn object(members: Vec<(String, String)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
}
