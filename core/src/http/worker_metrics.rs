//! Metrics of all processes that serve an address together: the one that is asked has the others keep their numbers where it can
//! read them, and waits for them for a limited time.

use std::time::{Duration, Instant};

use super::{
    Endpoint, EndpointOutput, Exchange, ExchangeId, ExchangeOwner, Part,
    logging::Reason,
    probes,
    process_message::{ProcessMessage, Sender},
    reply::Accepts,
    requests::HttpRequest,
    streams::exchange,
};
use crate::protocol::json;

/// The time in which the other processes have to answer, and then the driver.
const TIME: Duration = Duration::from_secs(1);
/// The maximum number of requests for metrics that wait.
const MAX_READERS: usize = 100;
const TOO_MANY_READERS: &str =
    "too many requests for metrics wait for the other processes: send this one again later";
const NO_NUMBERS: &str = "the numbers of the processes of this server can't be read at the moment";

/// A request to the driver, which knows the processes of the address.
#[derive(Debug, Eq, PartialEq)]
pub enum WorkersRequest {
    /// Reply with [`WorkersReply::Listed`], and then send this message to the other processes.
    List { message: Vec<u8> },
    /// Keep the numbers of this process where the others can read them, and then send them this message.
    Keep { message: Option<Vec<u8>> },
    /// Reply with [`WorkersReply::AddedUp`]: the sum of the numbers of this process and all that others have kept. These others have
    /// done so just now, and those with these numbers of the system have not.
    AddUp { collection: u64, answered: Vec<u64>, missing: Vec<u32> },
}

/// A reply of the driver, or a report.
#[derive(Debug)]
pub enum WorkersReply {
    /// The other processes that serve the address: their numbers among these processes, and those in the system.
    Listed(Vec<(u64, u32)>),
    /// A process is gone.
    Gone(u64),
    /// The text of a collection.
    AddedUp(u64, String),
}

/// The collections of one process.
#[derive(Debug, Default)]
pub(super) struct Collections {
    /// `true` if the driver knows the other processes.
    has_workers: bool,
    running: Option<Collection>,
    /// Requests that came after the collection had begun: they get the numbers of the next one.
    waiting: Vec<ExchangeId>,
    last: u64,
}

#[derive(Debug)]
struct Collection {
    number: u64,
    readers: Vec<ExchangeId>,
    stage: Stage,
    until: Instant,
}

#[derive(Debug)]
enum Stage {
    Listing,
    Asking { others: Vec<(u64, u32)>, answered: Vec<u64> },
    AddingUp,
}

impl Endpoint {
    /// Has the endpoint answer for all processes when it is asked for metrics. The driver carries out [`EndpointOutput::Workers`].
    #[doc(hidden)] // For the drivers and the tests.
    pub fn join_workers(&mut self) {
        self.share();
        self.collections.has_workers = true;
        self.admission.begin_to_collect();
    }

    /// Answers a request for metrics once the numbers are there.
    pub(super) fn read_metrics(&mut self, now: Instant, request: HttpRequest) {
        let collections = &mut self.collections;
        let readers = collections.running.as_ref().map_or(0, |running| running.readers.len());
        if readers + collections.waiting.len() >= MAX_READERS {
            let reason = Reason::limit("metrics_readers", TOO_MANY_READERS);
            return self.refuse_for_now(request, &reason);
        }
        let id = request.exchange;
        collections.waiting.push(id);
        let exchange = Exchange {
            // It never becomes a stream of events.
            accepts: Accepts { json: true, stream: false },
            is_streaming: false,
            ..exchange(now, request, ExchangeOwner::Metrics)
        };
        self.exchanges.insert(id, exchange);
        self.begin_collection(now);
    }

    /// Forgets a request for metrics whose client has left.
    pub(super) fn leave_metrics(&mut self, id: ExchangeId) {
        self.exchanges.remove(&id);
        self.collections.waiting.retain(|waiting| *waiting != id);
        if let Some(running) = &mut self.collections.running {
            running.readers.retain(|reader| *reader != id);
        }
    }

    /// Has the others keep the numbers of this process, which ends.
    pub(super) fn keep_last_numbers(&mut self) {
        if self.collections.has_workers && self.metrics().is_on() {
            self.ask_driver(WorkersRequest::Keep { message: None });
        }
    }

    /// Handles a request of another process for the numbers of this one.
    pub(super) fn keep_numbers(&mut self, to: Sender) {
        if self.collections.has_workers {
            let by = self.engine.process();
            let message = Some(written(&ProcessMessage::Counted { to, by }));
            self.ask_driver(WorkersRequest::Keep { message });
        }
    }

    /// Notes that another process has kept its numbers.
    pub(super) fn note_counted(&mut self, now: Instant, to: Sender, by: u64) {
        if to.process == self.engine.process()
            && let Some(Collection { number, stage: Stage::Asking { answered, .. }, .. }) =
                &mut self.collections.running
            && *number == to.message
            && !answered.contains(&by)
        {
            answered.push(by);
            self.add_up_if_complete(now);
        }
    }

    pub(super) fn handle_workers(&mut self, now: Instant, reply: WorkersReply) {
        match reply {
            WorkersReply::Listed(others) => {
                if let Some(running) = &mut self.collections.running
                    && matches!(running.stage, Stage::Listing)
                {
                    running.stage = Stage::Asking { others, answered: Vec::new() };
                    self.add_up_if_complete(now);
                }
            }
            WorkersReply::Gone(process) => {
                if let Some(Collection { stage: Stage::Asking { others, .. }, .. }) =
                    &mut self.collections.running
                {
                    others.retain(|(other, _)| *other != process);
                    self.add_up_if_complete(now);
                }
            }
            WorkersReply::AddedUp(collection, text) => {
                let is_it = |running: &mut Collection| running.number == collection;
                if let Some(running) = self.collections.running.take_if(is_it) {
                    self.answer_readers(running, &probes::metrics_part(text));
                    self.begin_collection(now);
                }
            }
        }
    }

    /// Goes on without the processes that have not answered in time.
    pub(super) fn check_collection(&mut self, now: Instant) {
        let Some(running) = &self.collections.running else { return };
        if running.until > now {
            return self.sweep_at(Some(running.until));
        }
        match running.stage {
            Stage::Listing | Stage::Asking { .. } => self.add_up(now),
            Stage::AddingUp => {
                if let Some(running) = self.collections.running.take() {
                    self.answer_readers(running, &Part::unavailable(NO_NUMBERS));
                }
                self.begin_collection(now);
            }
        }
    }

    /// Begins a collection for the requests that wait, unless one is running.
    fn begin_collection(&mut self, now: Instant) {
        let collections = &mut self.collections;
        if collections.running.is_some() || collections.waiting.is_empty() {
            return;
        }
        collections.last += 1;
        let number = collections.last;
        let readers = std::mem::take(&mut collections.waiting);
        let until = now + TIME;
        collections.running = Some(Collection { number, readers, stage: Stage::Listing, until });
        let from = Sender { process: self.engine.process(), message: number };
        let message = written(&ProcessMessage::Count { from });
        self.ask_driver(WorkersRequest::List { message });
        self.sweep_at(Some(until));
    }

    fn add_up_if_complete(&mut self, now: Instant) {
        if let Some(Collection { stage: Stage::Asking { others, answered }, .. }) =
            &self.collections.running
            && others.iter().all(|(other, _)| answered.contains(other))
        {
            self.add_up(now);
        }
    }

    fn add_up(&mut self, now: Instant) {
        let Some(running) = &mut self.collections.running else { return };
        let stage = std::mem::replace(&mut running.stage, Stage::AddingUp);
        running.until = now + TIME;
        let (collection, until) = (running.number, running.until);
        let (others, answered) = match stage {
            Stage::Asking { others, answered } => (others, answered),
            Stage::Listing | Stage::AddingUp => (Vec::new(), Vec::new()),
        };
        let missing = others.into_iter().filter(|(other, _)| !answered.contains(other));
        let missing = missing.map(|(_, worker)| worker).collect();
        self.ask_driver(WorkersRequest::AddUp { collection, answered, missing });
        self.sweep_at(Some(until));
    }

    fn answer_readers(&mut self, collection: Collection, part: &Part) {
        let Part::Head { status, headers, body, .. } = part else { return };
        for id in collection.readers {
            if let Some(mut exchange) = self.exchanges.remove(&id) {
                let (headers, body) = (headers.clone(), body.clone());
                self.respond(id, &mut exchange, *status, headers, body, false);
            }
        }
    }

    fn ask_driver(&mut self, request: WorkersRequest) {
        self.outputs.push_back(EndpointOutput::Workers(request));
    }
}

fn written(message: &ProcessMessage) -> Vec<u8> {
    let mut text = String::new();
    json::push(&mut text, message);
    text.into_bytes()
}
