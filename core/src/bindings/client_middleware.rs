//! Middleware of clients that functions of the host language run.
//!
//! The host gets each request with a number. It runs its functions, in which [`MiddlewareRuns::next`] sends the
//! request, and ends with [`MiddlewareRuns::finish`] or [`MiddlewareRuns::fail`].

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU32, Ordering},
    },
};

use serde_json::Value;
use tokio::sync::oneshot;

use crate::{
    client::{ClientBuilder, Next, OperationReply, Request},
    error::{Error, ErrorKind},
    protocol::json,
};

/// The numbers differ between clients, because several clients may share a queue of the host.
static NEXT: AtomicU32 = AtomicU32::new(1);

tokio::task_local! {
    static TICKET: u64;
}

/// A request that waits for the middleware of the host.
#[derive(Debug)]
pub struct WaitingRequest {
    /// The number of the run.
    pub number: u32,
    /// The ticket of the operation; `None` outside [`with_ticket`].
    pub ticket: Option<u64>,
    pub method: String,
    /// A JSON object.
    pub params: String,
}

/// The requests of a client that are inside middleware, by number.
#[derive(Debug, Default)]
pub struct MiddlewareRuns(Mutex<HashMap<u32, Run>>);

#[derive(Debug)]
struct Run {
    method: String,
    next: Next,
    done: oneshot::Sender<Result<Value, Error>>,
}

/// Removes a run whose request was given up.
struct Guard {
    number: u32,
    runs: Weak<MiddlewareRuns>,
}

/// Performs an operation whose middleware gets this ticket.
pub async fn with_ticket<T>(ticket: u64, operation: impl Future<Output = T>) -> T {
    TICKET.scope(ticket, operation).await
}

impl MiddlewareRuns {
    /// Adds middleware to a client that reports each request to the host.
    pub fn register(
        self: &Arc<Self>,
        builder: ClientBuilder,
        report: impl Fn(WaitingRequest) + Send + Sync + 'static,
    ) -> ClientBuilder {
        let runs = Arc::downgrade(self);
        builder.middleware(["*"], move |request: Request, next| {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let guard = Guard { number, runs: Weak::clone(&runs) };
            let (done, outcome) = oneshot::channel();
            if let Some(runs) = runs.upgrade() {
                runs.lock().insert(number, Run { method: request.method.clone(), next, done });
            }
            let ticket = TICKET.try_with(|ticket| *ticket).ok();
            let params = request.params.to_string();
            report(WaitingRequest { number, ticket, method: request.method, params });
            async move {
                let _guard = guard;
                outcome.await.unwrap_or_else(|_| Err(is_over()))
            }
        })
    }

    /// Sends the request of a run with these params, JSON; may be called several times. The reply's result is that of the
    /// protocol.
    pub fn next(
        &self,
        number: u32,
        params: &[u8],
    ) -> impl Future<Output = Result<OperationReply, Error>> + Send + 'static {
        let run = self.lock().get(&number).map(|run| (run.method.clone(), run.next.clone()));
        let params = json::from_bytes(params);
        async move {
            let (method, next) = run.ok_or_else(is_over)?;
            let params =
                params.map_err(|error| Error::misuse(format!("middleware: {method}: {error}")))?;
            let result = next.run(Request { method, params }).await?;
            Ok(json::to_raw(&result).into())
        }
    }

    /// Ends a run with the result that the middleware returned, JSON.
    pub fn finish(&self, number: u32, result: &[u8]) {
        let result = json::from_bytes(result);
        self.end(number, result.map_err(|error| Error::misuse(format!("middleware: {error}"))));
    }

    /// Ends a run with the error of the middleware. Returns `false` if the caller has given up.
    pub fn fail(&self, number: u32, error: Error) -> bool {
        self.end(number, Err(error))
    }

    fn end(&self, number: u32, outcome: Result<Value, Error>) -> bool {
        let run = self.lock().remove(&number);
        run.is_some_and(|run| run.done.send(outcome).is_ok())
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Run>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(runs) = self.runs.upgrade() {
            runs.lock().remove(&self.number);
        }
    }
}

fn is_over() -> Error {
    Error::new(ErrorKind::Misuse, "middleware: the request is over, so it can't be sent any more")
}
