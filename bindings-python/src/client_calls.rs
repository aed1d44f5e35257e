//! Operations under way: each has a ticket, under which its outcome arrives in a mailbox.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use gudgeon::{bindings::client_middleware::with_ticket, client::OperationReply, error::Error};
use pyo3::PyResult;
use tokio::task::AbortHandle;

use crate::{
    client_mailbox::{Content, Entries},
    client_runtime::runtime,
    stream::lock,
};

/// The operations under way, by ticket.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(Arc<Mutex<HashMap<u64, AbortHandle>>>);

impl Calls {
    /// Runs an operation of a client, `None` for one of several. Its outcome arrives under this ticket, which is returned.
    pub(crate) fn start(
        &self,
        client: Option<u64>,
        ticket: u64,
        entries: &Arc<Entries>,
        doing: impl Future<Output = Result<OperationReply, Error>> + Send + 'static,
    ) -> PyResult<u64> {
        let (calls, entries) = (self.clone(), Arc::clone(entries));
        let runtime = runtime()?;
        let mut running = lock(&self.0);
        // Boxed, because tokio copies the future of a task several times.
        let task = runtime.spawn(Box::pin(async move {
            let outcome = with_ticket(ticket, doing).await;
            // Under the lock, so that what was cancelled leaves nothing behind.
            calls.finish(ticket, || {
                let content = match outcome {
                    Ok(reply) => Content::Done(reply),
                    Err(error) => Content::Failed(error),
                };
                entries.push(client, ticket, content);
            });
        }));
        running.insert(ticket, task.abort_handle());
        Ok(ticket)
    }

    /// Stops an operation.
    pub(crate) fn cancel(&self, ticket: u64) {
        if let Some(call) = lock(&self.0).remove(&ticket) {
            call.abort();
        }
    }

    /// Does something unless the operation was cancelled; it can't be cancelled meanwhile.
    pub(crate) fn unless_cancelled(&self, ticket: u64, doing: impl FnOnce()) {
        let running = lock(&self.0);
        if running.contains_key(&ticket) {
            doing();
        }
    }

    fn finish(&self, ticket: u64, doing: impl FnOnce()) {
        let mut running = lock(&self.0);
        if running.remove(&ticket).is_some() {
            doing();
        }
    }
}
