//! The `tracing` events of the core, queued until a host language hands them to its own logger.
//!
//! Events come from any thread, also from one that holds a lock, so they are only queued here; the host takes them on a
//! thread of its own.

use std::{
    collections::VecDeque,
    fmt,
    sync::{
        Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::{Map, Value};
pub use tracing::Level;
use tracing::{
    Event, Metadata, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
    span,
};

pub use crate::driver::stderr::has_room;
pub use crate::log_text::{is_invisible, single_line};
use crate::{
    clock,
    driver::stderr::dropped_message,
    log_events::{self, RequestStage},
    log_text::beginning,
    session::server::CallContext,
};

/// The number of events that wait at most; the newest are dropped and counted.
const MAX_WAITING: usize = 1_000;
/// The length in bytes to which a report of the host is cut.
const MAX_REPORT: usize = 16 * 1024;
/// The time that the last call waits for the one that logs.
const CLOSING: Duration = Duration::from_millis(500);
/// The length in bytes to which a message or a field is cut, because peers choose part of some.
const MAX_TEXT: usize = 2_000;

/// An event of the core.
#[derive(Clone, Debug, PartialEq)]
pub struct LogEvent {
    pub level: Level,
    /// The name of the part of the core that logs, such as `gudgeon.transport`.
    pub logger: String,
    pub message: String,
    pub fields: Map<String, Value>,
}

impl LogEvent {
    /// Returns the message for loggers that write lines, with the fields in parentheses. The sentences of the catalogue's events
    /// say what their fields do.
    pub fn line(&self) -> String {
        if self.fields.is_empty() || self.fields.contains_key("event") {
            return self.message.clone();
        }
        let fields: Vec<String> = self
            .fields
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            })
            .collect();
        format!("{} ({})", self.message, fields.join(", "))
    }
}

/// Returns the event that ready-made middleware logs at a stage of a request: "received", "done", "failed" or "timed". `text` are
/// the params or the error, as far as they are to be logged, and `after` is the time since the request came.
pub fn request_event(
    stage: &str,
    method: &str,
    named: Option<&str>,
    text: Option<&str>,
    after: Duration,
    context: Option<&CallContext>,
) -> LogEvent {
    let stage = match stage {
        "received" => RequestStage::Received(text),
        "done" => RequestStage::Done(after),
        "failed" => RequestStage::Failed(after, text.unwrap_or_default()),
        _ => RequestStage::Timed(after),
    };
    let facts = context.map(CallContext::log_facts).unwrap_or_default();
    let event = log_events::LogEvent::for_request(stage, method, named, facts);
    let declaration = event.declaration();
    LogEvent {
        level: declaration.level,
        logger: logger(declaration.target).unwrap_or_default(),
        message: event.to_string(),
        fields: event.fields(),
    }
}

/// Sends the events of this process from level debug on to the queue. `wake` is called from any thread when events wait;
/// it must not block. Has no effect if the program already has a `tracing` subscriber.
pub fn install(wake: fn()) {
    let _ = tracing::subscriber::set_global_default(Queueing { wake });
}

/// Queues a message of the host that it can't log at once. Returns `true` if the thread that waits has to be started.
pub fn add(level: Level, logger: &str, message: &str, fields: Map<String, Value>) -> bool {
    let message = beginning(message, MAX_REPORT).to_owned();
    Process::current().add(LogEvent { level, logger: logger.into(), message, fields })
}

/// Blocks until events wait, and passes them to `log`. Returns `false` after [`close`].
pub fn wait(log: impl FnOnce(Vec<LogEvent>)) -> bool {
    let process = Process::current();
    let mut queue = lock(&process.queue);
    while queue.is_empty() && !process.is_closed() {
        queue = process.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
    }
    drop(queue);
    let _turn = lock(&process.logging);
    if process.is_closed() {
        return false;
    }
    let events = process.take();
    if !events.is_empty() {
        log(events);
    }
    true
}

/// Returns the events that wait, without blocking.
pub fn take() -> Vec<LogEvent> {
    Process::current().take()
}

/// Passes the events that wait to `log`; later events are dropped. Waits for a call of [`wait`] that is logging, but not
/// for a logger that blocks.
pub fn close(log: impl FnOnce(Vec<LogEvent>)) {
    let process = Process::current();
    let deadline = clock::now() + CLOSING;
    let mut turn = process.logging.try_lock();
    while turn.is_err() && clock::now() < deadline {
        std::thread::sleep(Duration::from_millis(1));
        turn = process.logging.try_lock();
    }
    let events = process.take();
    if turn.is_ok() && !events.is_empty() {
        log(events);
    }
    process.closed.store(true, Ordering::Release);
    let _queue = lock(&process.queue);
    process.arrived.notify_all();
}

/// Returns `true` for the first call in this process, so that its caller starts the thread that waits.
pub fn starts_waiting() -> bool {
    !Process::current().has_waiter.swap(true, Ordering::AcqRel)
}

/// Begins an empty queue. Must be called in a forked process: another thread of the parent may have held the locks of
/// the inherited queue, and the thread that waits exists in the parent only.
pub fn forked() {
    let _ = Process::current().child.set(Box::new(Process::new()));
}

/// The queue of one process.
struct Process {
    queue: Mutex<Queue>,
    arrived: Condvar,
    /// Held while events are passed to the host's logger.
    logging: Mutex<()>,
    closed: AtomicBool,
    has_waiter: AtomicBool,
    /// The queue of this process, if it was forked from the one that this queue belongs to.
    child: OnceLock<Box<Process>>,
}

#[derive(Debug)]
struct Queue {
    waiting: VecDeque<LogEvent>,
    dropped: u64,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.dropped == 0
    }
}

static FIRST: Process = Process::new();

impl Process {
    const fn new() -> Self {
        Self {
            queue: Mutex::new(Queue { waiting: VecDeque::new(), dropped: 0 }),
            arrived: Condvar::new(),
            logging: Mutex::new(()),
            closed: AtomicBool::new(false),
            has_waiter: AtomicBool::new(false),
            child: OnceLock::new(),
        }
    }

    fn current() -> &'static Self {
        let mut process = &FIRST;
        while let Some(child) = process.child.get() {
            process = child;
        }
        process
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// Returns `true` if the host has to be woken.
    fn add(&self, event: LogEvent) -> bool {
        if self.is_closed() {
            return false;
        }
        let mut queue = lock(&self.queue);
        let is_first = queue.is_empty();
        if queue.waiting.len() < MAX_WAITING {
            queue.waiting.push_back(event);
        } else {
            queue.dropped += 1;
        }
        drop(queue);
        if is_first {
            self.arrived.notify_one();
        }
        is_first
    }

    fn take(&self) -> Vec<LogEvent> {
        let mut queue = lock(&self.queue);
        let mut events: Vec<LogEvent> = queue.waiting.drain(..).collect();
        let dropped = std::mem::take(&mut queue.dropped);
        drop(queue);
        if dropped > 0 {
            events.push(LogEvent {
                level: Level::WARN,
                logger: "gudgeon.logs".into(),
                message: dropped_message(dropped),
                fields: Map::from_iter([("dropped".to_owned(), dropped.into())]),
            });
        }
        events
    }
}

struct Queueing {
    wake: fn(),
}

impl Subscriber for Queueing {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && *metadata.level() <= Level::DEBUG
            && logger(metadata.target()).is_some()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(LevelFilter::DEBUG)
    }

    fn event(&self, event: &Event<'_>) {
        let metadata = event.metadata();
        let mut values = Values::default();
        event.record(&mut values);
        let event = LogEvent {
            level: *metadata.level(),
            logger: logger(metadata.target()).unwrap_or_default(),
            message: values.message,
            fields: values.fields,
        };
        if Process::current().add(event) {
            (self.wake)();
        }
    }

    // No span is enabled.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// Returns the logger of an event, from the module that it comes from; `None` for those of other crates.
fn logger(target: &str) -> Option<String> {
    let mut modules = target.split("::");
    if modules.next() != Some("gudgeon") {
        return None;
    }
    Some(modules.next().map_or_else(|| "gudgeon".to_owned(), |part| format!("gudgeon.{part}")))
}

#[derive(Default)]
struct Values {
    message: String,
    fields: Map<String, Value>,
}

impl Values {
    fn add(&mut self, field: &Field, value: Value) {
        self.fields.insert(field.name().to_owned(), value);
    }
}

impl Visit for Values {
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, cut(value).into());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let text = cut(&format!("{value:?}"));
        if field.name() == "message" {
            self.message = text;
        } else {
            self.add(field, text.into());
        }
    }
}

/// Returns a string on one line, of a limited length.
fn cut(text: &str) -> String {
    let mut text = single_line(text).into_owned();
    if text.len() > MAX_TEXT {
        text.truncate(beginning(&text, MAX_TEXT).len());
        text.push('…');
    }
    text
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(log: impl FnOnce()) -> Vec<LogEvent> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let _turn = lock(&ONE_AT_A_TIME);
        take();
        tracing::subscriber::with_default(Queueing { wake: || () }, log);
        take()
    }

    #[test]
    fn an_event_keeps_its_level_its_part_of_the_core_and_its_fields() {
        let events = recorded(|| {
            tracing::warn!(target: "gudgeon::transport::listen", limit = 3, name = "a", error = %"no", "too {}", "long");
            tracing::debug!(target: "gudgeon", flag = true, "seen");
        });
        let [first, second] = &events[..] else { panic!("{events:?}") };
        assert_eq!((first.level, &*first.logger), (Level::WARN, "gudgeon.transport"));
        assert_eq!(first.line(), "too long (limit=3, name=a, error=no)");
        assert_eq!(first.fields["limit"], 3);
        assert_eq!((second.level, &*second.logger), (Level::DEBUG, "gudgeon"));
        assert_eq!(second.fields["flag"], true);
    }

    #[test]
    fn the_sentence_of_an_event_of_the_catalogue_is_its_line() {
        let event = log_events::LogEvent::new(
            log_events::EventKind::HttpRefused,
            "the request is for the host \"evil\"",
        );
        let events = recorded(|| event.because("host").write(crate::log_limit::LeftOut::default()));
        let [event] = &events[..] else { panic!("{events:?}") };
        assert_eq!((event.level, &*event.logger), (Level::INFO, "gudgeon.http"));
        assert!(event.line().ends_with("the request is for the host \"evil\""), "{event:?}");
        assert_eq!(event.fields["event"], "http.refused");
        assert_eq!(event.fields["reason"], "host");
        assert!(!event.fields.contains_key("session"), "{event:?}");
    }

    #[test]
    fn a_report_of_the_host_is_cut() {
        let events = recorded(|| {
            add(Level::ERROR, "a", &"x".repeat(2 * MAX_REPORT), Map::new());
        });
        assert_eq!(events[0].message.len(), MAX_REPORT);
    }

    #[test]
    fn traces_spans_and_events_of_other_crates_are_not_queued() {
        let events = recorded(|| {
            tracing::trace!(target: "gudgeon::engine", "a detail");
            let _span = tracing::info_span!(target: "gudgeon::engine", "a span").entered();
            tracing::error!(target: "hyper::proto", "another crate's");
            tracing::error!(target: "gudgeonish", "another crate's");
        });
        assert_eq!(events, []);
    }

    #[test]
    fn more_events_than_the_queue_holds_are_counted() {
        let events = recorded(|| {
            for number in 0..MAX_WAITING + 7 {
                tracing::info!(target: "gudgeon::http", number);
            }
        });
        assert_eq!(events.len(), MAX_WAITING + 1);
        assert_eq!(events[MAX_WAITING].fields["dropped"], 7);
        assert_eq!(events[MAX_WAITING].level, Level::WARN);
    }

    #[test]
    fn a_long_text_of_a_peer_is_cut_between_characters() {
        let long = "ä".repeat(MAX_TEXT);
        let events = recorded(|| tracing::warn!(target: "gudgeon::http", %long, "x{long}"));
        assert!(events[0].message.len() <= MAX_TEXT + '…'.len_utf8());
        assert!(events[0].line().ends_with("…)"));
    }

    #[test]
    fn a_text_of_a_peer_stays_on_its_line() {
        let events = recorded(|| {
            tracing::warn!(target: "gudgeon::http", name = "a\nb", path = %"\x1b[2J", "no {}", "\r");
        });
        assert_eq!(events[0].line(), r"no \r (name=a\nb, path=\u{1b}[2J)");
    }

    #[test]
    fn closing_passes_what_waits_and_ends_the_waiter() {
        let process: &'static Process = Box::leak(Box::new(Process::new()));
        let event = LogEvent {
            level: Level::INFO,
            logger: "gudgeon".into(),
            message: "last".into(),
            fields: Map::new(),
        };
        assert!(process.add(event.clone()), "the first event wakes the host");
        assert!(!process.add(event.clone()), "the host was already woken");
        assert_eq!(process.take().len(), 2);
        process.closed.store(true, Ordering::Release);
        assert!(!process.add(event));
        assert_eq!(process.take(), []);
    }
}
