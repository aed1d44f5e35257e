//! Ready-made middleware: `server.middleware(["tools/call"], rate_limit(100.0, 20))`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use serde_json::Value;

use super::{Next, Request};
use crate::server::{ToolError, handler::BoxFuture};

/// The type of a middleware function.
pub trait Ready: Fn(Request, Next) -> Answering + Send + Sync + 'static {}

impl<F: Fn(Request, Next) -> Answering + Send + Sync + 'static> Ready for F {}

type Answering = BoxFuture<Result<Value, ToolError>>;

/// An HTTP status as the code, because negative codes are reserved (2026-07-28, "Error Codes").
const TOO_MANY: i64 = 429;
const TOO_LARGE: i64 = 413;
/// The maximum number of callers whose requests are counted.
const KEPT: usize = 10_000;
/// Methods that are never rejected, because a client could not learn the reason without them.
const SPARED: [&str; 3] = ["initialize", "server/discover", "ping"];

/// Logs the duration of each request in milliseconds with `tracing`.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["*"], middleware::timing());
/// ```
pub fn timing() -> impl Ready {
    |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let (subject, start) = (subject(&request), Instant::now());
            let result = next.run(request).await;
            tracing::info!("{subject} took {:.1} ms", start.elapsed().as_secs_f64() * 1e3);
            result
        })
    }
}

/// Logs each request and its outcome with `tracing`; with `params`, the params as well.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["tools/call"], middleware::logging(true));
/// ```
pub fn logging(params: bool) -> impl Ready {
    move |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let subject = subject(&request);
            if params {
                tracing::info!("{subject} {}", request.params);
            } else {
                tracing::info!("{subject}");
            }
            let result = next.run(request).await;
            match &result {
                Ok(_) => tracing::info!("{subject} is done"),
                Err(error) => tracing::info!("{subject} failed: {error}"),
            }
            result
        })
    }
}

/// The callers that share a limit in [`rate_limit_by`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CountedBy {
    /// Each principal, or each client name if there is no principal.
    Principal,
    /// Each client name.
    Client,
    /// All callers together.
    Server,
}

/// Like [`rate_limit_by`], by principal.
///
/// ```
/// # use gudgeon::{Server, server::middleware};
/// let server = Server::new("shelf").middleware(["tools/call"], middleware::rate_limit(100.0, 20));
/// ```
///
/// # Panics
/// Panics if `per_second` or `burst` is not positive.
#[track_caller]
pub fn rate_limit(per_second: f64, burst: u32) -> impl Ready {
    rate_limit_by(CountedBy::Principal, per_second, burst)
}

/// Rejects requests beyond `per_second` on average, with up to `burst` at once. `initialize`, `server/discover`,
/// `ping` and notifications are never rejected. A rejected tool call gets a result that the model can read; other
/// requests get error 429.
///
/// ```
/// # use gudgeon::{Server, server::middleware::{self, CountedBy}};
/// let server =
///     Server::new("shelf").middleware(["*"], middleware::rate_limit_by(CountedBy::Server, 100.0, 20));
/// ```
///
/// # Panics
/// Panics if `per_second` or `burst` is not positive.
#[track_caller]
pub fn rate_limit_by(by: CountedBy, per_second: f64, burst: u32) -> impl Ready {
    assert!(per_second > 0.0, "rate_limit: per_second must be greater than 0, got {per_second}");
    assert!(burst >= 1, "rate_limit: burst must be at least 1, got {burst}");
    let burst = f64::from(burst);
    let buckets = Arc::new(Mutex::new(HashMap::<String, (f64, Instant)>::new()));
    move |request: Request, next: Next| -> Answering {
        if SPARED.contains(&request.method.as_str()) || request.context.request_id().is_none() {
            return Box::pin(next.run(request));
        }
        let now = Instant::now();
        let who = who(by, &request);
        let mut buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, then) = buckets.get(&who).copied().unwrap_or((burst, now));
        let left = burst.min(left + now.duration_since(then).as_secs_f64() * per_second);
        let granted = left >= 1.0;
        buckets.insert(who, (if granted { left - 1.0 } else { left }, now));
        if buckets.len() > KEPT
            && let Some(oldest) =
                buckets.iter().min_by_key(|(_, (_, at))| *at).map(|it| it.0.clone())
        {
            buckets.remove(&oldest);
        }
        drop(buckets);
        if granted {
            return Box::pin(next.run(request));
        }
        let wait = (1.0 - left) / per_second;
        let text = format!(
            "too many requests: at most {per_second} per second are allowed; try again in {wait:.1} s"
        );
        Box::pin(std::future::ready(Err(refusal(&request, TOO_MANY, text))))
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
pub fn response_limit(max_bytes: usize) -> impl Ready {
    assert!(max_bytes >= 1, "response_limit: max_bytes must be at least 1, got {max_bytes}");
    move |request: Request, next: Next| -> Answering {
        Box::pin(async move {
            let kept = Request { params: Value::Null, ..request.clone() };
            let subject = subject(&request);
            let result = next.run(request).await?;
            let size = result.to_string().len();
            if size <= max_bytes || SPARED.contains(&kept.method.as_str()) {
                return Ok(result);
            }
            let text = format!(
                "the result of {subject} has {size} bytes, more than the limit of {max_bytes}; request less"
            );
            Err(refusal(&kept, TOO_LARGE, text))
        })
    }
}

fn subject(request: &Request) -> String {
    match request.subject() {
        Some(name) => format!("{} {name}", request.method),
        None => request.method.clone(),
    }
}

fn who(by: CountedBy, request: &Request) -> String {
    let principal = || request.context.principal().filter(|_| by == CountedBy::Principal);
    match by {
        CountedBy::Server => String::new(),
        _ => match principal() {
            Some(principal) => principal.subject.clone(),
            None => format!("client {}", request.context.client().name),
        },
    }
}

fn refusal(request: &Request, code: i64, text: String) -> ToolError {
    match request.method.as_str() {
        "tools/call" => ToolError::new(text),
        _ => ToolError::protocol(code, text, None::<()>),
    }
}
