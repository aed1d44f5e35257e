//! Maps a request to its answer or to the handler that computes it: one line per method.

use std::{sync::Arc, time::Duration};

use http::{HeaderMap, header::AUTHORIZATION};
use serde_json::{Value, json};

use super::{
    ComponentOptions, Components, Handler, MiddlewareFrame, Page, Prepared, Reading, Registry,
    Resolution, ResultBuilder, Visibility, completion, component::Component, middleware, resource,
    served::Served,
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{
        CacheHint, CacheScope, CompleteRequest, CompletionTarget, Listing, Method, MethodName,
        Principal, Raw, Request, Response, SubscriptionFilter, json::to_raw,
        scope_hierarchy::ScopeHierarchy,
    },
    schema::{self, Checked, Subject},
    wire,
};

/// The number of names that an unknown one is compared with.
const MAX_COMPARED: usize = 200;

/// The next step for a request.
#[derive(Debug)]
pub enum Dispatch {
    Answer(Result<Response, Fault>),
    /// Opens a subscription with the accepted part of the requested filter.
    Listen(SubscriptionFilter),
    Run(Job),
}

/// A handler run.
#[derive(Debug)]
pub struct Job {
    pub handler: Handler,
    /// The handler's input: a JSON object.
    pub input: String,
    pub result_builder: ResultBuilder,
    pub timeout: Option<Duration>,
    /// The middleware frame that wraps the handler.
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

/// The context that a request is dispatched in.
#[derive(Clone, Copy)]
pub struct RequestScope<'a> {
    /// The components that the caller may see.
    pub visibility: &'a Visibility,
    pub principal: Option<&'a Principal>,
    /// The headers of the HTTP request.
    pub headers: Option<&'a HeaderMap>,
    /// `true` if the request came over a network.
    pub is_remote: bool,
    /// `true` if headers that repeat arguments must match them.
    pub checks_headers: bool,
    pub cursors: &'a dyn Cursors,
    /// The params as received, for a handler that replaces the router's own answer.
    pub raw_params: Option<&'a Raw>,
}

impl RequestScope<'_> {
    /// Returns `true` if the handler can identify the caller, so that a result may be specific to that user. Shared
    /// caches do not separate users by HTTP credentials (RFC 9111, section 3.5).
    fn is_user_specific(self) -> bool {
        self.principal.is_some()
            || self.headers.is_some_and(|headers| headers.contains_key(AUTHORIZATION))
    }

    /// Errors if the caller's token lacks a scope that the component needs. Callers that no network separates from the server
    /// need none.
    fn check_scopes(
        self,
        components: &Components,
        options: &ComponentOptions,
    ) -> Result<(), Fault> {
        let ComponentOptions { scopes, .. } = options;
        if scopes.is_empty() {
            return Ok(());
        }
        let is_allowed = match self.principal {
            None => !self.is_remote,
            Some(principal) => {
                let hierarchy = ScopeHierarchy::new(components.server.scope_implies.clone());
                hierarchy.suffices(&principal.scopes, scopes)
            }
        };
        if is_allowed {
            return Ok(());
        }
        let message = format!("this needs the scopes: {}", scopes.join(" "));
        let data = to_raw(&json!({ "scopes": scopes }));
        Err(Fault::new(FaultKind::InsufficientScope, message).with_data(Some(data)))
    }

    /// Returns the cache hint of a result: how long and by whom it may be cached.
    fn hint(self, options: &ComponentOptions) -> CacheHint {
        let said = options.cache_scope.map(|scope| scope == CacheScope::Private);
        // A component with restricted access must never be served to others from a shared cache.
        let is_restricted = options.is_guarded || !options.scopes.is_empty();
        let private = is_restricted || said.unwrap_or_else(|| self.is_user_specific());
        CacheHint { ttl_ms: options.cache_ttl.as_millis().try_into().unwrap_or(u64::MAX), private }
    }
}

/// Seals and opens list cursors. A cursor is opaque to clients and valid for one list only.
pub trait Cursors {
    /// Returns the cursor of the page that begins after entry `after`.
    fn seal(&self, list: &str, after: u64) -> String;
    /// Returns `None` if the cursor was not made by this server for this list.
    fn open(&self, list: &str, cursor: &str) -> Option<u64>;
}

/// Answers a request, or returns the handler run that answers it.
pub fn dispatch(components: &Components, request: Request, scope: RequestScope<'_>) -> Dispatch {
    let wanting =
        components.middleware.as_ref().filter(|middleware| middleware.wants(&request.method()));
    let Some(middleware) = wanting else { return answer(components, request, scope) };
    let seen = request.clone();
    let resolution = match answer(components, request, scope) {
        Dispatch::Run(mut job) => {
            // Middleware must see every read, so its results are never served from the read cache.
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
    let description = Arc::new(components.describe());
    Dispatch::Run(middleware.prepared(&seen, description, resolution, scope.is_user_specific()))
}

fn answer(components: &Components, request: Request, scope: RequestScope<'_>) -> Dispatch {
    let visibility = scope.visibility;
    if let Some(job) = replaced(components, &request, scope) {
        return run(job);
    }
    let answer = match request {
        Request::Initialize(_) | Request::Discover => {
            Ok(Response::Description(Arc::new(components.describe())))
        }
        Request::Ping | Request::SetLevel { .. } | Request::Unsubscribe { .. } => {
            Ok(Response::Empty)
        }
        Request::ListTools { cursor } => {
            list(components, &components.tools, Method::ListTools, cursor.as_deref(), scope)
                .map(Response::Tools)
        }
        Request::ListPrompts { cursor } => {
            list(components, &components.prompts, Method::ListPrompts, cursor.as_deref(), scope)
                .map(Response::Prompts)
        }
        Request::ListResources { cursor } => {
            list(components, &components.resources, Method::ListResources, cursor.as_deref(), scope)
                .map(Response::Resources)
        }
        Request::ListResourceTemplates { cursor } => {
            let method = Method::ListResourceTemplates;
            list(components, &components.templates, method, cursor.as_deref(), scope)
                .map(Response::ResourceTemplates)
        }
        Request::ListWhole { list } => Ok(whole(components, list, visibility)),
        Request::CallTool { name, arguments, .. } => {
            let job = call_tool(components, &name, arguments, scope);
            return run(job.map_err(|fault| fault.about("tool", &name)));
        }
        Request::ReadResource { uri, variables, .. } => {
            let uri = resource::filled(components, uri, variables.as_ref(), visibility);
            return run(uri.and_then(|uri| read_resource(components, uri, scope)));
        }
        Request::GetPrompt { name, arguments, .. } => {
            let job = get_prompt(components, &name, arguments, scope);
            return run(job.map_err(|fault| fault.about("prompt", &name)));
        }
        Request::Complete(request) => return complete(components, request, scope),
        Request::Subscribe { uri } => match components.options_at(&uri, visibility) {
            Some(options) => scope.check_scopes(components, options).map(|()| Response::Empty),
            None => Err(resource::not_found(&uri, None)),
        },
        Request::Listen { mut notifications } => {
            // A resource that does not exist yet may be subscribed to, unless that would tell hidden ones apart.
            let may_be_missing = !components.may_hide_resources();
            let is_allowed = |uri: &String| {
                let options = components.options_at(uri, visibility);
                options.map_or(may_be_missing, |options| {
                    scope.check_scopes(components, options).is_ok()
                })
            };
            if let Some(uris) = &mut notifications.resource_subscriptions {
                uris.retain(is_allowed);
            }
            return Dispatch::Listen(components.supported_filter(notifications));
        }
        Request::Other { method, params } => return run(other(components, &method, params)),
    };
    Dispatch::Answer(answer)
}

fn run(job: Result<Job, Fault>) -> Dispatch {
    job.map_or_else(|fault| Dispatch::Answer(Err(fault)), Dispatch::Run)
}

/// Errors with method-not-found if the list is empty of registrations, because the capability was not declared.
/// Resources and templates count as one capability.
fn list<T: Component>(
    components: &Components,
    registry: &Registry<T>,
    method: Method,
    cursor: Option<&str>,
    scope: RequestScope<'_>,
) -> Result<Listing<T::Listed>, Fault> {
    let is_declared = match method {
        Method::ListResources | Method::ListResourceTemplates => components.has_resources(),
        _ => components.has(registry),
    };
    if !is_declared {
        return Err(Fault::unknown_method(method.as_str()));
    }
    let after = match cursor {
        None => None,
        Some(cursor) => {
            let place = scope.cursors.open(registry.kind(), cursor);
            let place = place.filter(|place| registry.has_place(*place));
            Some(place.ok_or_else(|| Fault::invalid_params("invalid cursor"))?)
        }
    };
    let Page { items, spellings, next } =
        registry.page(after, components.server.page_size, scope.visibility);
    let next_cursor = next.map(|place| scope.cursors.seal(registry.kind(), place));
    let private = registry.is_guarded() || scope.visibility.is_by_scope();
    let cache = CacheHint { private, ..components.list_hint() };
    Ok(Listing { items, spellings, next_cursor, cache, meta: None })
}

/// Returns one whole list, for dialects without pagination.
fn whole(components: &Components, list: Method, visibility: &Visibility) -> Response {
    match list {
        Method::ListTools => Response::Tools(Listing::whole(listed(&components.tools, visibility))),
        Method::ListPrompts => {
            Response::Prompts(Listing::whole(listed(&components.prompts, visibility)))
        }
        _ => Response::AllResources {
            resources: listed(&components.resources, visibility).collect(),
            templates: listed(&components.templates, visibility).collect(),
        },
    }
}

fn listed<'a, T: Component>(
    registry: &'a Registry<T>,
    visibility: &'a Visibility,
) -> impl Iterator<Item = Arc<T::Listed>> {
    registry.visible(visibility).map(|component| Arc::clone(component.listed()))
}

fn call_tool(
    components: &Components,
    name: &str,
    arguments: Option<Raw>,
    scope: RequestScope<'_>,
) -> Result<Job, Fault> {
    let component = components.tools.get_visible(name, scope.visibility).ok_or_else(|| {
        let message = unknown("tool", &components.tools, name, scope.visibility);
        Fault::new(FaultKind::UnknownTool, message).about_unknown("tool", name)
    })?;
    scope.check_scopes(components, &component.options)?;
    let arguments =
        arguments.map_or_else(|| "{}".into(), |raw| String::from(Box::<str>::from(raw)));
    let given = arguments.as_str();
    if let Some(headers) = scope.headers.filter(|_| scope.checks_headers) {
        wire::check_params(headers, &component.mirrored, given)?;
    }
    let input = match component.check_arguments(given) {
        Ok(Checked::AsGiven) => arguments,
        Ok(Checked::Decoded(decoded)) => decoded,
        Err(_) if component.leaves_to_handler(given) => arguments,
        Err(violation) => {
            let violation = violation.with_subject(Subject::Argument);
            let message = format!("Invalid arguments for tool {name:?}: {violation}");
            return Err(Fault::new(FaultKind::InvalidArguments, message));
        }
    };
    let result_builder = ResultBuilder::Tool(Arc::clone(component));
    Ok(Job::new(component.handler.clone(), input, result_builder).within(component.options.timeout))
}

/// Returns the handler run that reads `uri`, for handlers that read the server's own resources.
pub fn find_resource(
    components: &Components,
    uri: String,
    visibility: &Visibility,
) -> Result<Job, Fault> {
    let scope = RequestScope {
        visibility,
        principal: None,
        headers: None,
        is_remote: false,
        checks_headers: false,
        cursors: &NoPages,
        raw_params: None,
    };
    read_resource(components, uri, scope)
}

/// A cursor codec for requests that list nothing.
struct NoPages;

impl Cursors for NoPages {
    fn seal(&self, _: &str, _: u64) -> String {
        String::new()
    }

    fn open(&self, _: &str, _: &str) -> Option<u64> {
        None
    }
}

fn read_resource(
    components: &Components,
    uri: String,
    scope: RequestScope<'_>,
) -> Result<Job, Fault> {
    let Some(served) = components.served_at(&uri, scope.visibility) else {
        return Err(resource::not_found(&uri, None).about_unknown("resource", &uri));
    };
    let (options, handler, mime_type, input) = match served {
        Served::Resource(it) => (&it.options, &it.handler, &it.resource.mime_type, "{}".into()),
        Served::Template(it, variables) => {
            let variables: serde_json::Map<String, Value> = variables.into_iter().collect();
            let input = match it.takes_uri {
                true => json!({ "uri": uri }),
                false => Value::Object(variables),
            };
            let input = input.to_string();
            (&it.options, &it.handler, &it.template.mime_type, input)
        }
    };
    scope.check_scopes(components, options).map_err(|fault| fault.about("resource", &uri))?;
    let (mime_type, cache) = (mime_type.clone(), scope.hint(options));
    let reading = Reading { uri, mime_type, cache, keep: options.keep };
    let result_builder = ResultBuilder::Resource(Box::new(reading));
    Ok(Job::new(handler.clone(), input, result_builder).within(options.timeout))
}

fn get_prompt(
    components: &Components,
    name: &str,
    arguments: Vec<(String, String)>,
    scope: RequestScope<'_>,
) -> Result<Job, Fault> {
    let component = components.prompts.get_visible(name, scope.visibility).ok_or_else(|| {
        let message = unknown("prompt", &components.prompts, name, scope.visibility);
        Fault::invalid_params(message).about_unknown("prompt", name)
    })?;
    scope.check_scopes(components, &component.options)?;
    component.check(&arguments)?;
    let (input, result_builder) =
        (object(arguments).to_string(), ResultBuilder::Prompt(Arc::clone(component)));
    Ok(Job::new(component.handler.clone(), input, result_builder).within(component.options.timeout))
}

/// Returns the message about a name that no component has, with the name that was meant. Components with a predicate are not
/// named, because the host was not asked who sees them.
#[cold]
fn unknown<T: Component>(
    kind: &str,
    registry: &Registry<T>,
    name: &str,
    visibility: &Visibility,
) -> String {
    let public = registry.visible(visibility).filter(|component| !component.options().is_guarded);
    match schema::nearest(name, public.take(MAX_COMPARED).map(|component| component.key())) {
        Some(meant) => format!("Unknown {kind}: {name}; did you mean {meant:?}?"),
        None => format!("Unknown {kind}: {name}"),
    }
}

/// Returns an empty completion if the target exists and the argument has no completion handler.
fn complete(
    components: &Components,
    request: CompleteRequest,
    scope: RequestScope<'_>,
) -> Dispatch {
    let found = completion::find(components, &request.target, &request.argument, scope.visibility);
    // Without any completion handler the capability was not declared (Completion, "Error Handling").
    if !matches!(found, Ok((_, Some(_)))) && !completion::any(components) {
        return Dispatch::Answer(Err(Fault::unknown_method(Method::Complete.as_str())));
    }
    let Ok((options, found)) = found else {
        let (CompletionTarget::Prompt(name) | CompletionTarget::Resource(name)) = request.target;
        return Dispatch::Answer(Err(Fault::invalid_params(format!(
            "nothing to complete: {name} is not offered"
        ))));
    };
    if let Err(fault) = scope.check_scopes(components, options) {
        return Dispatch::Answer(Err(fault));
    }
    match found {
        None => Dispatch::Answer(Ok(Response::Completion {
            values: Vec::new(),
            total: None,
            has_more: false,
            meta: None,
        })),
        Some(found) => {
            let input = json!({ "value": request.value, "arguments": object(request.given) });
            let handler = found.clone();
            Dispatch::Run(Job::new(handler, input.to_string(), ResultBuilder::Completion))
        }
    }
}

/// Runs the handler of a vendor method.
fn other(components: &Components, method: &MethodName, params: Raw) -> Result<Job, Fault> {
    let found =
        components.method(method.as_str()).ok_or_else(|| Fault::unknown_method(method.as_str()))?;
    check_params(components, method.as_str(), params.get())?;
    let result_builder = ResultBuilder::Method(Box::new(method.clone()));
    Ok(Job::new(found.clone(), String::from(Box::<str>::from(params)), result_builder))
}

/// Runs a handler that replaces the router's answer to a standard method.
fn replaced(
    components: &Components,
    request: &Request,
    scope: RequestScope<'_>,
) -> Option<Result<Job, Fault>> {
    let name = request.method();
    let MethodName::Standard(_) = name else { return None };
    let handler = components.method(name.as_str())?;
    let params =
        scope.raw_params.map_or_else(|| middleware::params(request), |raw| raw.get().to_owned());
    if let Err(fault) = check_params(components, name.as_str(), &params) {
        return Some(Err(fault));
    }
    let description = Arc::new(components.describe());
    let prepared = Prepared::replaced(name, &params, description, scope.is_user_specific());
    Some(Ok(Job::new(handler.clone(), params, ResultBuilder::Prepared(Arc::new(prepared)))))
}

fn check_params(components: &Components, method: &str, params: &str) -> Result<(), Fault> {
    let Some(schema) = components.params.get(method) else { return Ok(()) };
    let given = serde_json::from_str(params).unwrap_or_default();
    schema.check(&given).map_err(|violation| {
        Fault::invalid_params(format!(
            "Invalid params: {}",
            violation.with_subject(Subject::Parameter)
        ))
    })
}

fn object(members: Vec<(String, String)>) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name, Value::String(value))).collect())
}
