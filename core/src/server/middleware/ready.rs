//! Ready-made middleware: `server.middleware(["tools/call"], rate_limit(CountedBy::Principal, 100.0, 20))`.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::{Next, Request};
pub use crate::router::limits::CountedBy;
use crate::{
    clock,
    log_events::{LogEvent, RequestStage},
    log_limit::LeftOut,
    router::limits::{Caller, RateLimit, ResponseLimit},
    server::{Context, ToolError, handler::BoxFuture},
    session::server::CallContext,
};

type Answering = BoxFuture<Result<Value, ToolError>>;

/// Logs the duration of each request with `tracing`, as the event `request.timed` at level info with fields.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["*"], middleware::timing());
/// ```
pub fn timing() -> impl Fn(Request, Next) -> Answering + Send + Sync + 'static {
    |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let (logged, start) = (Logged::new(&request), clock::now());
            let result = next.run(request).await;
            logged.write(RequestStage::Timed(clock::since(start)));
            result
        })
    }
}

/// Logs each request and its outcome with `tracing`, as the events `request.received` and `request.done` at level info with
/// fields; with `params`, the text has the params as well, up to 16 KiB of them.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["tools/call"], middleware::logging(true));
/// ```
pub fn logging(params: bool) -> impl Fn(Request, Next) -> Answering + Send + Sync + 'static {
    move |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let (logged, start) = (Logged::new(&request), clock::now());
            let shown = params.then(|| request.params.to_string());
            logged.write(RequestStage::Received(shown.as_deref()));
            let result = next.run(request).await;
            let after = clock::since(start);
            match &result {
                Ok(_) => logged.write(RequestStage::Done(after)),
                Err(error) => logged.write(RequestStage::Failed(after, &error.to_string())),
            }
            result
        })
    }
}

/// Rejects requests beyond `per_second` on average, with up to `burst` at once. `initialize`, `server/discover`,
/// `ping` and notifications are never rejected. A rejected tool call gets a result that the model can read; other
/// requests get error 429. Callers without a principal are counted by the address that they call from, and where that is
/// unknown, all together.
///
/// ```
/// # use gudgeon::{Server, server::middleware::{self, CountedBy}};
/// let server =
///     Server::new("shelf").middleware(["*"], middleware::rate_limit(CountedBy::Principal, 100.0, 20));
/// ```
///
/// # Panics
/// Panics if `per_second` or `burst` is not positive.
#[track_caller]
pub fn rate_limit(
    by: CountedBy,
    per_second: f64,
    burst: u32,
) -> impl Fn(Request, Next) -> Answering + Send + Sync + 'static {
    let limit = RateLimit::new(per_second, burst.into(), by);
    let limit = Arc::new(Mutex::new(limit.unwrap_or_else(|error| panic!("rate_limit: {error}"))));
    let start = clock::now();
    move |request: Request, next: Next| -> Answering {
        let context = &request.context;
        if !RateLimit::counts(&request.method) || context.is_notification() {
            return Box::pin(next.run(request));
        }
        let (principal, client) = (context.principal(), context.request().client);
        let principal = principal.as_ref().map(|principal| principal.subject.as_str());
        let caller = Caller { principal, remote: context.remote(), client: &client.name };
        let mut limit = limit.lock().unwrap_or_else(PoisonError::into_inner);
        let admitted = limit.admit(clock::since(start).as_secs_f64(), &request.method, caller);
        drop(limit);
        match admitted {
            Ok(()) => Box::pin(next.run(request)),
            Err(rejection) => {
                Box::pin(std::future::ready(Err(ToolError::from_failure(rejection.into()))))
            }
        }
    }
}

/// Rejects results of more than `max_bytes` of JSON with error 413, in the same way and with the same exceptions as
/// [`rate_limit`]. Questions are not results.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["*"], middleware::response_limit(100_000));
/// ```
///
/// # Panics
/// Panics if `max_bytes` is 0.
#[track_caller]
pub fn response_limit(
    max_bytes: usize,
) -> impl Fn(Request, Next) -> Answering + Send + Sync + 'static {
    let limit =
        ResponseLimit::new(max_bytes).unwrap_or_else(|error| panic!("response_limit: {error}"));
    move |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let method = request.method.clone();
            let subject = request.subject().map(ToOwned::to_owned);
            let result = next.run(request).await?;
            let checked = limit.check(&method, subject.as_deref(), result.to_string().len());
            checked.map(|()| result).map_err(|error| ToolError::from_failure(error.into()))
        })
    }
}

/// A request as the log names it.
struct Logged {
    method: String,
    subject: Option<String>,
    context: Context,
}

impl Logged {
    fn new(request: &Request) -> Self {
        Self {
            method: request.method.clone(),
            subject: request.subject().map(ToOwned::to_owned),
            context: request.context.clone(),
        }
    }

    fn write(&self, stage: RequestStage<'_>) {
        let facts = self.context.with_request(CallContext::log_facts);
        let event = LogEvent::for_request(stage, &self.method, self.subject.as_deref(), facts);
        event.write(LeftOut::default());
    }
}
