//! The upstream servers of a server in another language.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime::Handle;

use super::{
    client_questions::{Asked, Questions},
    client_settings::ClientSettings,
    client_target::ConfiguredTarget,
};
use crate::{
    client::ClientBuilder,
    driver::{EndpointServer, Host, boxed},
    error::{Error, Language},
    protocol::Raw,
    router::{Failure, Handler, Registrar, Reply},
    server::{NativeServing, NativeSubject},
    upstream::{MakeClient, Mounted},
};

/// The servers that are mounted into one and that clients reach, by prefix.
pub struct Upstreams {
    language: Language,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    parts: BTreeMap<String, Part>,
    /// The number of endpoints that serve them.
    servings: usize,
}

struct Part {
    mounted: Arc<Mounted>,
    /// Runs middleware around calls of the server.
    around: Handler,
    /// The kinds of registrations around which middleware runs.
    wrapped: Vec<String>,
    /// The number of servers that were mounted before.
    place: usize,
}

/// A question that the client of an upstream server asks the program, which helps it to sign in. Dropped, it is refused.
#[derive(Debug)]
pub struct SignInQuestion {
    questions: Arc<Questions>,
    number: u32,
    params: Raw,
}

/// Called with the questions of the clients of an upstream server.
pub type AskProgram = Arc<dyn Fn(SignInQuestion) + Send + Sync>;

/// The upstream servers of one endpoint that serves. Once the last one is dropped, their connections are closed.
#[derive(Debug)]
pub struct UpstreamServing {
    native: NativeServing,
    upstreams: Arc<Upstreams>,
    runtime: Handle,
}

impl Upstreams {
    pub fn new(language: Language) -> Self {
        Self { language, state: Mutex::default() }
    }

    /// Mounts the server at a place. `ask` gets the questions of its clients, and `adapt` changes the builder of each. Errors if
    /// the prefix or the settings of its client are invalid.
    pub fn mount(
        &self,
        prefix: &str,
        place: ConfiguredTarget,
        settings: ClientSettings,
        around: Handler,
        ask: AskProgram,
        adapt: impl Fn(ClientBuilder) -> ClientBuilder + Send + Sync + 'static,
    ) -> Result<(), Error> {
        let questions = Questions::new(self.language);
        let make: MakeClient = Box::new(move || {
            let builder = adapt(settings.builder_for(&place)?);
            let (ask, own) = (Arc::clone(&ask), Arc::clone(&questions));
            questions.authorize(builder, &settings, move |asked| {
                if let Asked::Question(number, _, question) = asked {
                    let (questions, params) = (Arc::clone(&own), question.params.clone());
                    ask(SignInQuestion { questions, number, params });
                }
            })
        });
        let mounted = Arc::new(Mounted::new(prefix, make()?, Some(make))?);
        let mut state = self.lock();
        let place = state.parts.len();
        match state.parts.entry(prefix.to_owned()) {
            Entry::Vacant(entry) => {
                entry.insert(Part { mounted, around, wrapped: Vec::new(), place });
                Ok(())
            }
            Entry::Occupied(_) => Err(Error::misuse(format!(
                "an upstream server is mounted with the prefix {prefix:?} already: give this one another"
            ))),
        }
    }

    /// Sets the kinds of registrations around which middleware runs.
    pub fn wrap(&self, prefix: &str, kinds: Vec<String>) {
        if let Some(part) = self.lock().parts.get_mut(prefix) {
            part.wrapped = kinds;
        }
    }

    /// Returns the handler that runs middleware around a native one.
    pub fn around(&self, subject: &NativeSubject) -> Option<Handler> {
        self.lock().parts.get(&subject.part).map(|part| Arc::clone(&part.around))
    }

    /// Runs the handlers of the servers for an endpoint; `None` if there are no servers. Whatever comes of them for other handlers
    /// is done by the `host` of the endpoint.
    pub fn serve(
        self: &Arc<Self>,
        server: &Arc<EndpointServer>,
        host: Arc<dyn Host>,
        runtime: &Handle,
    ) -> Option<UpstreamServing> {
        let mut state = self.lock();
        if state.parts.is_empty() {
            return None;
        }
        state.servings += 1;
        drop(state);
        let upstreams = Arc::clone(self);
        let is_wrapped = Arc::new(move |subject: &NativeSubject| upstreams.is_wrapped(subject));
        let native = NativeServing::start(server, host, runtime, is_wrapped);
        Some(UpstreamServing { native, upstreams: Arc::clone(self), runtime: runtime.clone() })
    }

    /// Reaches the servers. Returns once they were tried, or after a while.
    ///
    /// Must be called inside a tokio runtime.
    pub async fn reach(&self, registrar: &Arc<dyn Registrar>) {
        Mounted::start_all(&self.mounted(), registrar).await;
    }

    /// Returns the servers, in the order in which they were mounted.
    pub fn mounted(&self) -> Vec<Arc<Mounted>> {
        let state = self.lock();
        let mut parts: Vec<_> = state.parts.values().collect();
        parts.sort_by_key(|part| part.place);
        parts.into_iter().map(|part| Arc::clone(&part.mounted)).collect()
    }

    /// Forgets the servers, whose functions refer to the one that they are mounted into.
    pub fn clear(&self) {
        let parts = std::mem::take(&mut self.lock().parts);
        drop(parts);
    }

    fn is_wrapped(&self, subject: &NativeSubject) -> bool {
        let state = self.lock();
        let part = state.parts.get(&subject.part);
        part.is_some_and(|part| part.wrapped.iter().any(|kind| kind == subject.kind))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignInQuestion {
    /// Returns the operation that the client needs, JSON.
    pub fn params(&self) -> &str {
        self.params.get()
    }

    /// Answers with JSON. Returns the reason if the value is not an answer.
    pub fn answer(self, given: &[u8]) -> Option<String> {
        self.questions.answer(self.number, given)
    }

    /// Refuses with a reason, `{"kind", "message"}` or `{"name"}`.
    pub fn refuse(self, reason: &[u8]) {
        self.questions.refuse(self.number, reason);
    }
}

impl Drop for SignInQuestion {
    fn drop(&mut self) {
        self.questions.refuse(self.number, b"{}");
    }
}

impl UpstreamServing {
    /// Returns the runner of the handlers.
    pub fn native(&self) -> &NativeServing {
        &self.native
    }
}

impl Drop for UpstreamServing {
    fn drop(&mut self) {
        let mut state = self.upstreams.lock();
        state.servings -= 1;
        if state.servings > 0 {
            return;
        }
        // Under the lock, so that they stop before another endpoint starts them.
        for part in state.parts.values() {
            self.runtime.spawn(boxed(part.mounted.stop()));
        }
    }
}

/// Returns the outcome of a native handler for another language: its result, JSON, or its failure, as
/// [`Failure::described`] reads it.
pub fn outcome_json(outcome: Result<Reply, Failure>) -> (Option<String>, Option<String>) {
    match outcome {
        Ok(Reply::Result(result)) => (Some(result), None),
        // Native handlers pass on whole results.
        Ok(other) => {
            (None, Some(Failure::Exposed(format!("an unexpected reply: {other:?}")).describe()))
        }
        Err(failed) => (None, Some(failed.describe())),
    }
}

impl fmt::Debug for Upstreams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstreams").finish_non_exhaustive()
    }
}
