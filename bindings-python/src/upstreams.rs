//! The upstream servers of a Python server.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::{Arc, Mutex, Weak},
};

use gudgeon::{
    bindings::{
        client_questions::Questions, client_settings::ClientSettings, client_target::Place,
    },
    driver::{Host, Work},
    error::{Error, Language},
    protocol::json::ObjectWriter,
    router::{Failure, Registrar, Reply},
    server::{NativeServing, NativeSubject},
    upstream::{MakeClient, Mounted},
};
use pyo3::prelude::*;

use crate::{
    client_runtime::{remember_upstream, runtime},
    components::ServerComponents,
    handler::Handler,
    stream::{Stream, lock},
};

/// The servers that are mounted into one and that clients reach, by prefix.
#[derive(Default)]
pub(crate) struct Upstreams(Mutex<BTreeMap<String, Part>>);

struct Part {
    mounted: Arc<Mounted>,
    /// Runs middleware around calls of the server.
    around: Handler,
    /// The kinds of registrations around which middleware runs.
    wrapped: Vec<String>,
}

impl Upstreams {
    /// Mounts the server at a place. Errors if the prefix or the settings of its client are invalid.
    pub(crate) fn mount(
        &self,
        prefix: &str,
        place: Place,
        settings: ClientSettings,
        around: Handler,
    ) -> Result<(), Error> {
        let make: MakeClient = Box::new(move || {
            let builder = settings.builder_for(&place)?;
            // Only a person could answer, and nobody sits before the server.
            Arc::new(Questions::new(Language::Python)).authorize(builder, &settings, |_| ())
        });
        let mounted = Arc::new(Mounted::new(prefix, make()?, Some(make))?);
        let part = Part { mounted, around, wrapped: Vec::new() };
        match lock(&self.0).entry(prefix.to_owned()) {
            Entry::Vacant(place) => {
                place.insert(part);
                Ok(())
            }
            Entry::Occupied(_) => Err(Error::misuse(format!(
                "an upstream server is mounted with the prefix {prefix:?} already: give this one another"
            ))),
        }
    }

    /// Sets the kinds of registrations around which middleware runs.
    pub(crate) fn wrap(&self, prefix: &str, kinds: Vec<String>) {
        if let Some(part) = lock(&self.0).get_mut(prefix) {
            part.wrapped = kinds;
        }
    }

    /// Returns the function that runs middleware around a native handler.
    pub(crate) fn around(&self, subject: &NativeSubject) -> Option<Handler> {
        lock(&self.0).get(&subject.part).map(|part| Arc::clone(&part.around))
    }

    fn is_wrapped(&self, subject: &NativeSubject) -> bool {
        let parts = lock(&self.0);
        parts
            .get(&subject.part)
            .is_some_and(|part| part.wrapped.iter().any(|kind| kind == subject.kind))
    }

    /// Reaches the servers, and runs the handlers of what they offer for this stream. Returns once they were tried, or after a
    /// while.
    pub(crate) fn start(
        self: &Arc<Self>,
        py: Python<'_>,
        components: &ServerComponents,
        stream: &Arc<Stream>,
    ) -> PyResult<()> {
        let mounted: Vec<_> =
            lock(&self.0).values().map(|part| Arc::clone(&part.mounted)).collect();
        if mounted.is_empty() {
            return Ok(());
        }
        let runtime = runtime()?;
        let host = Arc::new(StreamHost(Arc::downgrade(stream)));
        let upstreams = Arc::clone(self);
        let is_wrapped = Arc::new(move |subject: &NativeSubject| upstreams.is_wrapped(subject));
        let server = stream.server.endpoint();
        let native = NativeServing::start(server, host, runtime.handle(), is_wrapped);
        *lock(&stream.native) = Some(native);
        mounted.iter().for_each(remember_upstream);
        let registrar: Arc<dyn Registrar> = Arc::new(components.clone());
        py.detach(|| runtime.block_on(Mounted::start_all(&mounted, &registrar)));
        Ok(())
    }

    /// Forgets the servers, whose functions refer to the one that they are mounted into.
    pub(crate) fn clear(&self) {
        let parts = std::mem::take(&mut *lock(&self.0));
        drop(parts);
    }
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").finish_non_exhaustive()
    }
}

/// Does the work that comes of native handlers.
struct StreamHost(Weak<Stream>);

impl Host for StreamHost {
    fn perform(&self, work: Work) {
        let Some(stream) = self.0.upgrade() else { return };
        if !work.is_empty() {
            stream.distribute(work, false);
        }
        stream.server.try_flush();
        stream.update_timer();
    }
}

/// Returns the outcome of a native handler for Python: its result, JSON, or its failure, JSON.
pub(crate) fn outcome(outcome: Result<Reply, Failure>) -> (Option<String>, Option<String>) {
    match outcome {
        Ok(Reply::Result(result)) => (Some(result), None),
        // Native handlers pass on whole results.
        Ok(other) => {
            (None, Some(failure("exposed", &format!("an unexpected reply: {other:?}"), |_| ())))
        }
        Err(failed) => (None, Some(failure_json(failed))),
    }
}

fn failure_json(failed: Failure) -> String {
    match failed {
        Failure::Tool { message, meta } => failure("tool", &message, |out| {
            if let Some(meta) = &meta {
                out.raw("meta", meta.get());
            }
        }),
        Failure::Protocol { code, message, data } => failure("protocol", &message, |out| {
            out.member("code", &code);
            if let Some(data) = &data {
                out.raw("data", data.get());
            }
        }),
        Failure::MissingCapability { message, data } => {
            failure("missingCapability", &message, |out| {
                if let Some(data) = &data {
                    out.raw("data", data.get());
                }
            })
        }
        Failure::NotFound { uri, message } => {
            failure("notFound", message.as_deref().unwrap_or_default(), |out| {
                out.member("uri", &uri);
            })
        }
        Failure::Declined(message) => failure("declined", &message, |_| ()),
        Failure::Dismissed(message) => failure("dismissed", &message, |_| ()),
        Failure::Cancelled => failure("cancelled", "the call was cancelled", |_| ()),
        Failure::Invalid(message)
        | Failure::Exposed(message)
        | Failure::NotSupported(message)
        | Failure::Exception { message, .. } => failure("exposed", &message, |_| ()),
        Failure::TimedOut(seconds) => {
            failure("exposed", &format!("took longer than {seconds} s"), |_| ())
        }
        Failure::Unanswered(seconds) => {
            failure("exposed", &format!("no answer came for {seconds} s"), |_| ())
        }
    }
}

fn failure(kind: &str, message: &str, more: impl FnOnce(&mut ObjectWriter)) -> String {
    let mut out = ObjectWriter::with_capacity(message.len() + 48);
    out.member("kind", kind).member("message", message);
    more(&mut out);
    out.finish()
}
