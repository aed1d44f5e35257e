//! A client and a server joined by an in-memory connection, with a clock that is advanced manually.

use std::{
    collections::{HashMap, VecDeque},
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

use crate::{
    engine::{Effect, HandlerEvent, HostReply, Run, Start},
    error::{Error, ErrorKind},
    protocol::{MethodName, Raw},
    router::{Components, Failure, Reply},
    service::{Input, Output, Service},
    session::client::{
        self, ClientConfig, ClientSession, RequestKey, RequestOptions, ServerIdentity,
    },
};

/// A handler for tests: returns its outcome, or `None` to stay unfinished until [`Pair::finish`] is called.
pub type Runner = Box<dyn FnMut(&Run) -> Option<Result<Reply, Failure>>>;

/// A frame that was sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Sent {
    ByClient(String),
    ByServer(String),
}

/// A client session and a server that are connected to each other.
pub struct Pair {
    pub client: ClientSession,
    pub server: Service,
    /// All frames sent so far.
    pub wire: Vec<Sent>,
    /// Handlers that were started and are not finished.
    pub running: Vec<Run>,
    /// The client's events other than responses: logs, progress, questions.
    pub events: VecDeque<client::Output>,
    now: Instant,
    runner: Runner,
    done: HashMap<RequestKey, Result<Raw, Error>>,
    opened: Option<Result<Arc<ServerIdentity>, Error>>,
    next: u64,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("wire", &self.wire).finish_non_exhaustive()
    }
}

impl Pair {
    /// Creates a pair whose clock starts at `now`.
    pub fn new(
        now: Instant,
        config: ClientConfig,
        components: Arc<Components>,
        runner: impl FnMut(&Run) -> Option<Result<Reply, Failure>> + 'static,
    ) -> Self {
        Self {
            client: ClientSession::new(Arc::new(config)),
            server: Service::new(components, &start(now)),
            wire: Vec::new(),
            running: Vec::new(),
            events: VecDeque::new(),
            now,
            runner: Box::new(runner),
            done: HashMap::new(),
            opened: None,
            next: 0,
        }
    }

    /// Negotiates the revision. Errors with kind `Timeout` if that needs time to pass.
    pub fn connect(&mut self) -> Result<Arc<ServerIdentity>, Error> {
        self.handle_client(client::Input::Start);
        self.opened.take().unwrap_or_else(|| {
            Err(Error::new(ErrorKind::Timeout, "the negotiation is not finished"))
        })
    }

    /// Sends a request and returns its result.
    ///
    /// Errors with kind `Timeout` if the response requires the clock to advance or a handler to finish.
    pub fn request(&mut self, method: &str, params: &str) -> Result<Raw, Error> {
        let key = self.send(method, params, RequestOptions::default());
        self.outcome(key).unwrap_or_else(|| {
            Err(Error::new(ErrorKind::Timeout, format!("{method} is still running")))
        })
    }

    /// Sends a request without waiting for the response.
    pub fn send(&mut self, method: &str, params: &str, options: RequestOptions) -> RequestKey {
        let key = RequestKey(self.next);
        self.next += 1;
        let method = MethodName::parse(method);
        self.handle_client(client::Input::Request { key, method, params, options });
        key
    }

    /// Returns the outcome of a request, once.
    pub fn outcome(&mut self, key: RequestKey) -> Option<Result<Raw, Error>> {
        self.done.remove(&key)
    }

    /// Finishes a handler that was left unfinished.
    pub fn finish(&mut self, run: &Run, outcome: Result<Reply, Failure>) {
        self.running.retain(|other| other.id != run.id);
        self.handle_server(done(run, outcome));
    }

    /// Advances the clock; deadlines on the way fire in order.
    pub fn advance(&mut self, by: Duration) {
        let end = self.now + by;
        while let Some(due) = self.deadline().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(due);
            self.handle_client(client::Input::Tick);
            self.handle_server(Input::Tick);
        }
        self.now = end;
    }

    /// Passes an input to the client and delivers the resulting frames.
    pub fn handle_client(&mut self, input: client::Input<'_>) {
        self.client.handle(self.now, input);
        self.settle();
    }

    /// Passes an input to the server and delivers the resulting frames.
    pub fn handle_server(&mut self, input: Input<'_>) {
        self.server.handle(self.now, input);
        self.settle();
    }

    fn deadline(&self) -> Option<Instant> {
        [self.client.deadline(), self.server.deadline()].into_iter().flatten().min()
    }

    /// Delivers frames until neither side has output.
    fn settle(&mut self) {
        loop {
            if let Some(output) = self.client.poll() {
                self.carry_from_client(output);
            } else if let Some(output) = self.server.poll() {
                self.carry_from_server(output);
            } else {
                return;
            }
        }
    }

    fn carry_from_client(&mut self, output: client::Output) {
        match output {
            client::Output::Send(frame) => {
                self.wire.push(Sent::ByClient(String::from_utf8_lossy(&frame).into_owned()));
                self.server.handle(self.now, Input::Frame(&frame));
            }
            client::Output::Ready(identity) => self.opened = Some(Ok(identity)),
            client::Output::Failed(error) => self.opened = Some(Err(error)),
            client::Output::Done(key, outcome) => drop(self.done.insert(key, outcome)),
            event => self.events.push_back(event),
        }
    }

    fn carry_from_server(&mut self, output: Output) {
        match output {
            Output::Send(frame) | Output::Change(frame) => {
                self.wire.push(Sent::ByServer(String::from_utf8_lossy(&frame).into_owned()));
                self.client.handle(self.now, client::Input::Frame(&frame));
            }
            Output::Effect(Effect::Run(run)) => match (self.runner)(&run) {
                Some(outcome) => {
                    self.server.handle(self.now, done(&run, outcome));
                }
                None => self.running.push(*run),
            },
            Output::Effect(Effect::Cancel(run)) => {
                self.running.retain(|other| other.id != run);
            }
            // Components that not everyone sees are hidden.
            Output::Effect(Effect::Host(ticket, _)) => {
                let reply = HostReply::Failed("a pair has no filter".into());
                self.server.handle(self.now, Input::Host(ticket, reply));
            }
            Output::Compute(computation) => {
                self.server.handle(self.now, Input::Computed(computation.run()));
            }
            Output::Effect(
                Effect::Answered { .. }
                | Effect::Resume { .. }
                | Effect::Subscribed { .. }
                | Effect::CancelHost(_)
                | Effect::Span(_)
                | Effect::Log(_),
            ) => (),
        }
    }
}

fn done(run: &Run, outcome: Result<Reply, Failure>) -> Input<'static> {
    Input::Handler(run.id, HandlerEvent::Done(outcome))
}

/// Start parameters that are the same in every run.
pub fn start(now: Instant) -> Start {
    Start { now, unix: 1_800_000_000, seed: [7; 32], test_mode: None }
}
