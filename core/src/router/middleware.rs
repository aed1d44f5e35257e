//! Middleware of a shell: the requests that pass it, the prepared answer it receives, and the interpretation of its
//! reply. Params and results use the vocabulary of the newest revision.

use std::{borrow::Cow, sync::Arc};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::{
    Handler, Job, MethodFilter, ResultBuilder,
    handler::{Failure, Reply, bad_result, own_meta},
    middleware_params::{HandlerKind, completion},
    middleware_results::{complete, entries, write, write_type},
    prompt, resource, tool,
};
use crate::{
    error::Fault,
    protocol::{
        CacheHint, Listing, Method, MethodName, Raw, Request, Response, Revision,
        ServerDescription, SubscriptionFilter, json as text, json::ObjectWriter,
    },
    wire::{self, Lowered, Wire},
};

/// The fix named in the error about a result type of the handler's own.
const NO_TYPE: &str = ", which no client knows: leave it out, or rename that member";
/// The fix named where the result looks like a question: the core must ask questions itself, because it matches answers
/// and seals the state.
const ASK: &str = ": call ctx.elicit, ctx.sample or ctx.roots, or return questions (ask.elicit)";

/// Middleware that a shell runs around requests.
#[derive(Clone, Debug)]
pub struct Middleware {
    /// The handler, called with `{"method", "params", "result"}`, or `"error"` in place of the result. It returns the
    /// result, or [`Reply::Nothing`] to leave it unchanged.
    pub handler: Handler,
    /// `true` if registered handlers run with a [`MiddlewareFrame`]; `false` if their shell wraps them itself.
    pub wraps_handlers: bool,
    /// The methods that pass this middleware.
    methods: MethodFilter,
}

/// The router's answer before middleware sees it, or the context of a handler that replaces that answer.
#[derive(Clone, Debug)]
pub struct Prepared {
    method: MethodName,
    /// The URI of the resource, for reads.
    uri: String,
    /// The server's own description.
    description: Arc<ServerDescription>,
    /// The router's answer; `None` if only the handler has one.
    answer: Option<Resolution>,
    /// `true` if the caller is identified, or can be.
    is_user_specific: bool,
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub enum Resolution {
    Answer(Result<Response, Fault>),
    /// Opens a subscription with this filter.
    Listen(SubscriptionFilter),
}

/// A registered handler that runs inside middleware: the request, and the interpretation of its replies.
#[derive(Clone, Debug)]
pub struct MiddlewareFrame {
    /// The handler of the middleware.
    pub handler: Handler,
    pub method: MethodName,
    /// The params of the request: a JSON object.
    pub params: String,
    result_builder: ResultBuilder,
}

impl Middleware {
    /// `methods` are method names such as `tools/list`, or `*` for all.
    pub fn new<N: Into<Box<str>>>(
        handler: Handler,
        methods: impl IntoIterator<Item = N>,
        wraps_handlers: bool,
    ) -> Self {
        Self { handler, wraps_handlers, methods: MethodFilter::new(methods) }
    }

    pub(super) fn wants(&self, method: &MethodName) -> bool {
        self.methods.contains(method.as_str())
    }
}

impl Middleware {
    /// Returns the middleware run that receives the router's answer.
    pub(super) fn prepared(
        &self,
        request: &Request,
        description: Arc<ServerDescription>,
        answer: Resolution,
        is_user_specific: bool,
    ) -> Job {
        let mut input = ObjectWriter::with_capacity(256);
        let method = request.method();
        input.member("method", method.as_str()).raw("params", &params(request));
        write_type(&mut input, &method);
        match &answer {
            Resolution::Listen(filter) => {
                let result = json!({ "notifications": filter });
                input.member("result", &result).member("fixedParams", &true);
            }
            Resolution::Answer(Ok(response)) => write(&mut input, response),
            Resolution::Answer(Err(fault)) => {
                let newest = Wire::for_revision(Revision::LATEST);
                match wire::lower_fault(newest, Some(&method), fault.clone()) {
                    Lowered::Error(error) => drop(input.member("error", &error)),
                    Lowered::Tool(outcome) => write(&mut input, &Response::Tool(outcome)),
                }
            }
        }
        let (uri, answer) = (uri(request), Some(answer));
        let prepared = Prepared { method, uri, description, answer, is_user_specific };
        Job::new(self.handler.clone(), input.finish(), ResultBuilder::Prepared(Arc::new(prepared)))
    }
}

impl Prepared {
    /// Prepares the run of a handler that replaces the router's answer.
    pub(super) fn replaced(
        method: MethodName,
        params: &str,
        description: Arc<ServerDescription>,
        is_user_specific: bool,
    ) -> Self {
        #[derive(serde::Deserialize)]
        struct Named {
            #[serde(default)]
            uri: String,
        }
        let uri =
            serde_json::from_str::<Named>(params).map_or_else(|_| String::new(), |named| named.uri);
        Self { method, uri, description, answer: None, is_user_specific }
    }

    pub(super) fn method(&self) -> &str {
        self.method.as_str()
    }

    pub(super) fn runs_handler(&self) -> bool {
        self.answer.is_none()
    }

    /// Returns `true` if results of the method may be questions.
    pub(super) fn may_ask(&self) -> bool {
        let MethodName::Standard(method) = self.method else { return false };
        matches!(method, Method::CallTool | Method::ReadResource | Method::GetPrompt)
    }

    pub(super) fn resolve(&self, reply: Reply) -> Result<Resolution, Failure> {
        match (&self.answer, reply) {
            (Some(answer), Reply::Nothing) => Ok(answer.clone()),
            (Some(Resolution::Listen(_)), Reply::Json(result) | Reply::Result(result)) => {
                let mut result = object(&result)?;
                let filter = result.remove("notifications").unwrap_or_default();
                member(&filter, "notifications").map(Resolution::Listen)
            }
            (Some(_), Reply::Result(result)) => {
                let result = complete(&self.method, result)?;
                self.response(result).map(|response| Resolution::Answer(Ok(response)))
            }
            // A handler that replaces the router's answer returns the complete result.
            (None, Reply::Json(result)) => self
                .response(Reply::Result(result))
                .map(|response| Resolution::Answer(Ok(response))),
            (_, reply) => self.response(reply).map(|response| Resolution::Answer(Ok(response))),
        }
    }

    /// Parses a complete result, so that it can be converted to every revision.
    pub(super) fn response(&self, reply: Reply) -> Result<Response, Failure> {
        let MethodName::Standard(method) = self.method else { return plain(reply) };
        if let (true, Reply::Result(result)) = (self.may_ask(), &reply) {
            without_result_type(result, ASK)?;
        }
        match method {
            Method::CallTool => return tool::outcome(None, reply).map(Response::Tool),
            Method::ReadResource => {
                let cache = self.cache(&reply);
                return resource::contents(&self.uri, None, cache, reply);
            }
            Method::GetPrompt => return prompt::messages(reply),
            Method::Complete => return super::completion::response(reply),
            _ => (),
        }
        let result = match reply {
            Reply::Nothing => return Ok(Response::Empty),
            Reply::Json(result) | Reply::Result(result) => result,
            _ => return Err(not_an_object(method.as_str())),
        };
        if let Some(Resolution::Answer(Ok(Response::AllResources { templates, .. }))) = &self.answer
        {
            let resources = self.listing(&result, "resources")?.items.iter().cloned().collect();
            let name = "resourceTemplates";
            let templates = match object(&result)?.contains_key(name) {
                true => self.listing(&result, name)?.items.iter().cloned().collect(),
                false => templates.clone(),
            };
            return Ok(Response::AllResources { resources, templates });
        }
        match method {
            Method::ListTools => self.listing(&result, "tools").map(Response::Tools),
            Method::ListPrompts => self.listing(&result, "prompts").map(Response::Prompts),
            Method::ListResources => self.listing(&result, "resources").map(Response::Resources),
            Method::ListResourceTemplates => {
                self.listing(&result, "resourceTemplates").map(Response::ResourceTemplates)
            }
            Method::Initialize | Method::Discover => self.described(&result),
            _ if result.trim() == "{}" => Ok(Response::Empty),
            _ => plain(Reply::Json(result)),
        }
    }

    fn described(&self, result: &str) -> Result<Response, Failure> {
        let mut result = object(result)?;
        let cache = self.hint(&result);
        let mut description = ServerDescription::clone(&self.description);
        if let Some(capabilities) = result.remove("capabilities") {
            description.capabilities = member(&capabilities, "capabilities")?;
        }
        description.instructions = match result.remove("instructions") {
            None => None,
            Some(instructions) => member(&instructions, "instructions")?,
        };
        description.cache = cache;
        description.meta = own_meta(result.get("_meta").map(text::to_raw).as_deref())?;
        Ok(Response::Description(Arc::new(description)))
    }

    fn cache(&self, reply: &Reply) -> CacheHint {
        match (reply, &self.answer) {
            (Reply::Result(result), _) => {
                object(result).map_or_else(|_| CacheHint::default(), |object| self.hint(&object))
            }
            (_, Some(Resolution::Answer(Ok(Response::Contents { cache, .. })))) => *cache,
            _ => self.hint(&Map::new()),
        }
    }

    fn listing<T: DeserializeOwned>(
        &self,
        result: &str,
        name: &str,
    ) -> Result<Listing<T>, Failure> {
        let mut result = object(result)?;
        let (items, own) = entries(&mut result, name, self.answer.as_ref())?;
        let cache = match own {
            Some(it) => CacheHint { private: it.private || self.is_user_specific, ..it },
            None => self.hint(&result),
        };
        let next_cursor = result.remove("nextCursor").unwrap_or_default();
        Ok(Listing {
            items: member::<Vec<T>>(&items, name)?.into_iter().map(Arc::new).collect(),
            spellings: Arc::default(),
            next_cursor: member(&next_cursor, "nextCursor")?,
            cache,
            meta: own_meta(result.get("_meta").map(text::to_raw).as_deref())?,
        })
    }

    /// Returns the cache hint. A result changed by middleware may be specific to the caller, whatever its original
    /// scope was; a replacing handler states the scope itself.
    fn hint(&self, result: &Map<String, Value>) -> CacheHint {
        let said = result.get("cacheScope").and_then(Value::as_str);
        let private = match said {
            Some("private") => true,
            Some(_) if self.answer.is_none() => false,
            _ => self.is_user_specific,
        };
        CacheHint { ttl_ms: result.get("ttlMs").and_then(Value::as_u64).unwrap_or(0), private }
    }
}

impl MiddlewareFrame {
    pub(super) fn new(middleware: &Middleware, request: &Request, job: &Job) -> Self {
        let handler = middleware.handler.clone();
        let params = match &job.result_builder {
            ResultBuilder::Resource(reading) => {
                let mut out = ObjectWriter::with_capacity(64);
                out.member("uri", &reading.uri);
                if job.input != "{}" {
                    out.raw("variables", &job.input);
                }
                out.finish()
            }
            ResultBuilder::Prepared(_) => job.input.clone(),
            _ => params(request),
        };
        Self {
            handler,
            method: request.method(),
            params,
            result_builder: job.result_builder.clone(),
        }
    }

    pub(super) fn of_notification(
        middleware: &Middleware,
        notification: &MethodName,
        params: &Raw,
    ) -> Self {
        Self {
            handler: middleware.handler.clone(),
            method: notification.clone(),
            params: params.get().to_owned(),
            result_builder: ResultBuilder::Method(Box::new(notification.clone())),
        }
    }

    /// Returns `true` if the params contain the component's name, which differs between mounted servers.
    pub fn is_named(&self) -> bool {
        matches!(
            self.result_builder,
            ResultBuilder::Tool(_) | ResultBuilder::Prompt(_) | ResultBuilder::Completion
        )
    }

    /// Converts the handler's reply into the complete result, as JSON.
    pub fn result(&self, reply: Reply) -> Result<String, Failure> {
        self.result_builder.response(reply).map(|response| wire::plain_result(&response))
    }

    /// Returns the handler's input for changed params; `None` if the change does not affect it.
    pub fn input(&self, params: &str) -> Result<Option<String>, Failure> {
        let kind = match &self.result_builder {
            ResultBuilder::Tool(_) => HandlerKind::Tool,
            ResultBuilder::Prompt(_) => HandlerKind::Prompt,
            ResultBuilder::Completion => HandlerKind::Completion,
            ResultBuilder::Method(_) => HandlerKind::Method,
            ResultBuilder::Prepared(it) if it.runs_handler() => HandlerKind::Method,
            // With another URI it would be another resource.
            ResultBuilder::Resource(reading)
                if object(params)?.get("uri") == Some(&json!(reading.uri)) =>
            {
                HandlerKind::Resource
            }
            ResultBuilder::Resource(_) | ResultBuilder::Prepared(_) => return Ok(None),
        };
        kind.input(params).map_err(|error| bad_result(error.to_string()))
    }
}

/// Returns the params of a request in the vocabulary of the newest revision.
pub(super) fn params(request: &Request) -> String {
    let mut out = ObjectWriter::with_capacity(64);
    match request {
        Request::Initialize(it) => {
            out.member("protocolVersion", &it.protocol_version);
            for (name, raw) in [("capabilities", &it.capabilities), ("clientInfo", &it.client_info)]
            {
                if let Some(raw) = raw {
                    out.raw(name, raw.get());
                }
            }
        }
        Request::Ping | Request::Discover | Request::ListWhole { .. } => (),
        Request::ListTools { cursor }
        | Request::ListResources { cursor }
        | Request::ListResourceTemplates { cursor }
        | Request::ListPrompts { cursor } => {
            if let Some(cursor) = cursor {
                out.member("cursor", cursor);
            }
        }
        Request::CallTool { name, arguments, .. } => {
            out.member("name", name)
                .raw("arguments", arguments.as_ref().map_or("{}", |raw| raw.get()));
        }
        Request::ReadResource { uri, variables, .. } => {
            out.member("uri", uri);
            if let Some(variables) = variables {
                out.raw("variables", variables.get());
            }
        }
        Request::GetPrompt { name, arguments, .. } => {
            out.member("name", name).raw("arguments", &texts(arguments));
        }
        Request::Complete(it) => {
            let value = json!(it.value);
            completion(&mut out, &it.target, &it.argument, &value, &texts(&it.given));
        }
        Request::SetLevel { level } => {
            out.member("level", level);
        }
        Request::Subscribe { uri } | Request::Unsubscribe { uri } => {
            out.member("uri", uri);
        }
        Request::Listen { notifications } => {
            out.member("notifications", notifications);
        }
        Request::Other { params, .. } => return params.get().to_owned(),
    }
    out.finish()
}

fn texts(members: &[(String, String)]) -> String {
    let members = members.iter().map(|(name, value)| (name.clone(), Value::String(value.clone())));
    Value::Object(members.collect()).to_string()
}

fn uri(request: &Request) -> String {
    match request {
        Request::ReadResource { uri, .. } => uri.clone(),
        _ => String::new(),
    }
}

/// Returns the result of a method without a known schema.
pub(super) fn plain(reply: Reply) -> Result<Response, Failure> {
    match reply {
        Reply::Nothing => Ok(Response::Empty),
        Reply::Json(value) | Reply::Result(value) if value.starts_with('{') => {
            Ok(Response::Raw(without_empty_meta(&without_result_type(&value, NO_TYPE)?)?))
        }
        _ => Err(bad_result("a method returns an object, or nothing")),
    }
}

/// Removes `resultType`, which is added for revisions that have several result types (Overview, "Result Responses").
/// Errors with this fix if the type is not `complete`.
fn without_result_type<'a>(result: &'a str, fix: &str) -> Result<Cow<'a, str>, Failure> {
    let (others, kind) = text::apart(result, "resultType")
        .map_err(|error| bad_result(format!("the result is not an object: {error}")))?;
    match kind {
        Some(kind) if kind.get() != r#""complete""# => {
            Err(bad_result(format!("the result has the resultType {}{fix}", kind.get())))
        }
        _ => Ok(others),
    }
}

/// Removes an empty `_meta`.
fn without_empty_meta(result: &str) -> Result<Raw, Failure> {
    let (others, meta) = text::apart(result, "_meta")
        .map_err(|error| bad_result(format!("the result is not an object: {error}")))?;
    let whole = own_meta(meta.as_deref())?.map_or(others, |_| result.into());
    Ok(text::raw(whole.into_owned()))
}

fn object(result: &str) -> Result<Map<String, Value>, Failure> {
    serde_json::from_str(result)
        .map_err(|error| bad_result(format!("the result is not an object: {error}")))
}

fn member<T: DeserializeOwned>(value: &Value, name: &str) -> Result<T, Failure> {
    // `RawValue` members can only be deserialized from text.
    serde_json::from_str(&value.to_string())
        .map_err(|error| bad_result(format!("{name:?} of the result is not valid: {error}")))
}

fn not_an_object(method: &str) -> Failure {
    bad_result(format!("{method} returns an object"))
}
