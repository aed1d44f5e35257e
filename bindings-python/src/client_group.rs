//! Groups of clients.

use std::sync::Arc;

use gudgeon::{
    bindings::{
        client_group::{find_now, perform, subscribe},
        group_targets::{Targets, read, read_file},
        subscriptions::OpenSubscriptions,
    },
    client::ClientGroup,
    error::Language,
    protocol::json,
};
use pyo3::{IntoPyObjectExt as _, prelude::*, types::PyBytes};

use crate::{
    client::{NativeClient, next},
    client_calls::Calls,
    client_error::error_json,
    client_mailbox::Mailbox,
    client_subscriptions::to_tuple,
    error::raise,
    options::{self, raised},
};

/// The clients of a group, each of which was connected or tried to.
#[pyclass(frozen, name = "Group")]
#[derive(Debug)]
pub(crate) struct NativeGroup {
    group: ClientGroup,
    calls: Calls,
    subscriptions: Arc<OpenSubscriptions>,
}

#[pymethods]
impl NativeGroup {
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "pyo3 passes lists by value")]
    fn new(clients: Vec<PyRef<'_, NativeClient>>) -> PyResult<Self> {
        let members = clients.iter().filter_map(|client| client.member()).collect();
        let group = ClientGroup::from_members(members).map_err(|error| raise(&error))?;
        Ok(Self { group, calls: Calls::default(), subscriptions: Arc::default() })
    }

    /// Starts an operation: its name and its params. Returns the ticket.
    fn call(&self, mailbox: &Mailbox, what: String, params: Vec<u8>) -> PyResult<u64> {
        let group = self.group.clone();
        self.calls.start(
            None,
            next(),
            &mailbox.0,
            async move { perform(group, &what, &params).await },
        )
    }

    /// Returns the server that the name of a tool or prompt belongs to and the name there, if it is connected and
    /// certain without lists.
    fn find_now(&self, name: &str) -> Option<(String, String)> {
        find_now(&self.group, name)
    }

    /// Cancels an operation: nothing more arrives for this ticket.
    fn cancel(&self, mailbox: &Mailbox, ticket: u64) {
        self.calls.cancel(ticket);
        self.subscriptions.leave(ticket);
        mailbox.0.forget(ticket);
    }

    /// Subscribes to `{"filter", "server"?}`. Returns the ticket, which identifies the subscription from then on.
    fn subscribe(&self, mailbox: &Mailbox, params: Vec<u8>) -> PyResult<u64> {
        let (group, subscriptions) = (self.group.clone(), Arc::clone(&self.subscriptions));
        let (ticket, calls) = (next(), self.calls.clone());
        self.calls.start(None, ticket, &mailbox.0, async move {
            let subscription = subscribe(group, &params).await?;
            calls.unless_cancelled(ticket, || subscriptions.keep(ticket, subscription.into()));
            Ok(json::raw("{}".into()).into())
        })
    }

    /// Waits for the next event of a subscription. Returns the ticket.
    fn await_change(&self, mailbox: &Mailbox, subscription: u64) -> PyResult<u64> {
        let ready = self.subscriptions.ready(subscription);
        self.calls.start(None, next(), &mailbox.0, async move {
            ready.await;
            Ok(json::raw("{}".into()).into())
        })
    }

    /// Returns `(kind, uri, server)` or `("end", None, None)`; None if there is no event yet.
    fn take_change<'py>(
        &self,
        py: Python<'py>,
        subscription: u64,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let taken = self.subscriptions.take(subscription);
        taken.map(|change| to_tuple(change, py)).transpose()
    }

    fn unsubscribe(&self, subscription: u64) {
        self.subscriptions.leave(subscription);
    }

    /// Returns the errors of the servers: their names, and the errors as JSON.
    fn errors<'py>(&self, py: Python<'py>) -> Vec<(String, Bound<'py, PyBytes>)> {
        let errors = self.group.errors().into_iter();
        errors
            .map(|(name, error)| (name.to_owned(), PyBytes::new(py, error_json(&error).as_bytes())))
            .collect()
    }
}

/// Returns the mapping of names to targets in what a group was given, and the JSON of those that replace others of the same
/// names; or the path of the file that holds it, and None.
#[pyfunction]
pub(crate) fn group_targets<'py>(
    given: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Option<String>)> {
    match read(Language::Python, options::Python(given.clone())) {
        Ok(Targets::File(path)) => Ok((path.into_bound_py_any(given.py())?, None)),
        Ok(Targets::Named { targets, read }) => Ok((targets.0, Some(read))),
        Err(problem) => Err(raised(&problem, || repr(given))),
    }
}

/// Returns the targets by name in the text of a JSON file, as JSON.
#[pyfunction]
pub(crate) fn group_file(path: &str, text: &[u8]) -> PyResult<String> {
    read_file(Language::Python, path, text).map_err(|error| raised(&error, String::new))
}

fn repr(value: &Bound<'_, PyAny>) -> String {
    value.repr().map_or_else(|_| "a value".to_owned(), |text| text.to_string())
}
