//! Middleware: functions that run around requests.

mod ready;

use std::{fmt, sync::Arc};

use serde_json::{Map, Value};

pub use self::ready::{CountedBy, logging, rate_limit, response_limit, timing};
use super::{
    Context, ToolError,
    handler::{BoxFuture, Erased, Outcome},
};
use crate::router::{self, Failure, MethodFilter, MiddlewareFrame, Reply};

/// A request as seen by middleware.
#[derive(Clone, Debug)]
#[cfg_attr(not(feature = "bindings"), non_exhaustive)]
pub struct Request {
    /// The method, such as `tools/call`.
    pub method: String,
    /// The params as an object, in the newest revision's form: a tool's or prompt's `name`, a resource's `uri`, …
    pub params: Value,
    /// The context of the call, shared with the handler.
    pub context: Context,
}

/// The remaining middleware and the handler.
pub struct Next {
    way: Arc<Way>,
    at: usize,
}

type Layer = dyn Fn(Request, Next) -> BoxFuture<Result<Value, ToolError>> + Send + Sync;

/// The middleware of a server in order of registration, outermost first.
#[derive(Clone, Default)]
pub(crate) struct Stack(Vec<(MethodFilter, Arc<Layer>)>);

/// The middleware of a server that was mounted into another one.
#[derive(Clone, Debug)]
pub(crate) struct Mounted {
    pub(super) stack: Arc<Stack>,
    /// The name of the tool or prompt in the mounted server.
    pub(super) name: Option<String>,
}

/// The remaining path of a request.
struct Way {
    layers: Vec<NamedLayer>,
    /// The params as the client sent them.
    params: Value,
    end: End,
}

/// A middleware, and the name of the tool or prompt in its server.
struct NamedLayer {
    layer: Arc<Layer>,
    name: Option<String>,
}

enum End {
    Handler { handler: Arc<Erased>, middleware_frame: Box<MiddlewareFrame>, input: String },
    Core(Result<Value, (i64, String, Option<Value>)>),
}

impl Next {
    /// Runs the remaining middleware and the handler. Returns the complete result as JSON, in the newest revision's
    /// form.
    ///
    /// # Errors
    /// Errors if the handler does, and if the params were changed of a request that the core answers itself.
    pub async fn run(self, mut request: Request) -> Result<Value, ToolError> {
        let Self { way, at } = self;
        let Some(NamedLayer { layer, name }) = way.layers.get(at) else {
            return way.end.run(&way.params, request).await;
        };
        let named = match request.method.as_str() {
            "completion/complete" => request.params.get_mut("ref"),
            _ => Some(&mut request.params),
        };
        if let (Some(name), Some(Value::Object(named))) = (name, named) {
            named.insert("name".into(), Value::String(name.clone()));
        }
        let next = Self { way: Arc::clone(&way), at: at + 1 };
        layer(request, next).await
    }
}

impl Stack {
    pub(super) fn push<F, Answering>(&mut self, methods: Vec<String>, middleware: F)
    where
        F: Fn(Request, Next) -> Answering + Send + Sync + 'static,
        Answering: Future<Output = Result<Value, ToolError>> + Send + 'static,
    {
        let layer = move |request, next| -> BoxFuture<_> { Box::pin(middleware(request, next)) };
        self.0.push((MethodFilter::new(methods), Arc::new(layer)));
    }

    /// Returns the methods that the middleware applies to.
    pub(super) fn methods(&self) -> Vec<String> {
        let methods = self.0.iter().flat_map(|(methods, _)| methods.names());
        methods.map(ToOwned::to_owned).collect()
    }

    /// Returns the middleware for the router. `more` are methods that mounted servers have middleware for.
    pub(super) fn registered(&self, more: &[String]) -> router::Middleware {
        let stack = Arc::new(self.clone());
        let own = Arc::clone(&stack);
        let mut handler = Erased::new(Vec::new(), move |input, context, _| {
            let stack = Arc::clone(&own);
            Box::pin(async move { pass(&stack, &input, context).await })
        });
        handler.stack = Some(stack);
        let methods = self.methods().into_iter().chain(more.iter().cloned());
        router::Middleware::new(handler.kept(), methods, true)
    }

    fn layers<'a>(
        &'a self,
        method: &'a str,
        name: Option<&'a String>,
    ) -> impl Iterator<Item = NamedLayer> + 'a {
        self.0
            .iter()
            .filter(move |(methods, _)| methods.contains(method))
            .map(move |(_, layer)| NamedLayer { layer: Arc::clone(layer), name: name.cloned() })
    }
}

/// Runs a handler inside its middleware, if there is any.
pub(super) fn around(
    handler: &Arc<Erased>,
    middleware_frame: Option<Box<MiddlewareFrame>>,
    input: String,
    context: Context,
) -> BoxFuture<Outcome> {
    let Some(middleware_frame) = middleware_frame else { return handler.call(input, context) };
    let method = middleware_frame.method.as_str().to_owned();
    let outer = Erased::from_kept(&middleware_frame.handler);
    let mut layers: Vec<_> =
        outer.stack.iter().flat_map(|middleware| middleware.layers(&method, None)).collect();
    for Mounted { stack, name } in &handler.mounted {
        layers.extend(stack.layers(&method, name.as_ref()));
    }
    if layers.is_empty() {
        return handler.call(input, context);
    }
    let params: Value = serde_json::from_str(&middleware_frame.params).unwrap_or_default();
    let request = Request { method, params: params.clone(), context };
    let end = End::Handler { handler: Arc::clone(handler), middleware_frame, input };
    let next = Next { way: Arc::new(Way { layers, params, end }), at: 0 };
    let context = request.context.clone();
    Box::pin(async move {
        match next.run(request).await {
            Ok(result) => Ok(Reply::Result(result.to_string())),
            Err(error) => error.into_reply(&context),
        }
    })
}

/// Runs middleware around a request that the core answers.
async fn pass(stack: &Stack, input: &str, context: Context) -> Outcome {
    #[derive(serde::Deserialize)]
    struct Prepared {
        method: String,
        params: Value,
        #[serde(default)]
        result: Value,
        error: Option<PreparedError>,
    }
    #[derive(serde::Deserialize)]
    struct PreparedError {
        code: i64,
        message: String,
        data: Option<Value>,
    }
    let Prepared { method, params, result, error } =
        serde_json::from_str(input).map_err(|error| Failure::NotSupported(error.to_string()))?;
    let answer = match error {
        None => Ok(result),
        Some(PreparedError { code, message, data }) => Err((code, message, data)),
    };
    let layers = stack.layers(&method, None).collect();
    let way = Way { layers, params: params.clone(), end: End::Core(answer.clone()) };
    let next = Next { way: Arc::new(way), at: 0 };
    let changed = next.run(Request { method, params, context: context.clone() }).await;
    match (answer, changed) {
        (Ok(before), Ok(after)) if before == after => Ok(Reply::Nothing),
        (_, Ok(after)) => Ok(Reply::Result(after.to_string())),
        (Err((code, message, _)), Err(error)) if error.is(code, &message) => Ok(Reply::Nothing),
        (_, Err(error)) => error.into_reply(&context),
    }
}

impl End {
    async fn run(&self, params: &Value, request: Request) -> Result<Value, ToolError> {
        let Request { method, params: given, context } = request;
        let is_named =
            matches!(self, Self::Handler { middleware_frame, .. } if middleware_frame.is_named());
        let is_changed = match is_named {
            true => unnamed(&given) != unnamed(params),
            false => given != *params,
        };
        let fixed =
            || ToolError::from_failure(Failure::NotSupported(router::params_changed(&method)));
        match self {
            Self::Core(Err((code, message, data))) => {
                Err(ToolError::protocol(*code, message, data.as_ref()))
            }
            // An error result describes what the client sent, so it stays correct.
            Self::Core(Ok(result)) if is_changed && result["isError"] != true => Err(fixed()),
            Self::Core(Ok(result)) => Ok(result.clone()),
            Self::Handler { handler, middleware_frame, input } => {
                let input = if is_changed {
                    let other = middleware_frame
                        .input(&given.to_string())
                        .map_err(ToolError::from_failure)?;
                    other.ok_or_else(fixed)?
                } else {
                    input.clone()
                };
                let reply = handler.call(input, context).await.map_err(ToolError::from_failure)?;
                if let Reply::Questions(_) = reply {
                    return Err(ToolError::questions(reply));
                }
                let result = middleware_frame.result(reply).map_err(ToolError::from_failure)?;
                Ok(serde_json::from_str(&result).unwrap_or_default())
            }
        }
    }
}

/// Returns the params without the name, which differs between mounted servers.
fn unnamed(params: &Value) -> Map<String, Value> {
    let mut params = params.as_object().cloned().unwrap_or_default();
    params.remove("name");
    params.remove("ref");
    params
}

impl Request {
    /// Returns the name of the tool or prompt, or the URI of the resource.
    fn subject(&self) -> Option<&str> {
        self.params.get("name").or_else(|| self.params.get("uri"))?.as_str()
    }
}

impl fmt::Debug for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Next").field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stack").field("layers", &self.0.len()).finish()
    }
}
