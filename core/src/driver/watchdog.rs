//! Ends the process of a server whose handlers do not stop.
//!
//! A handler that blocks its thread or ignores its cancellation would otherwise keep the process alive after its client
//! has gone, and after signals. The watchdog has threads of its own, which no handler can block. Only servers that own
//! their process have one (`run`); inside a host application nothing ends the process.

use std::{
    fmt, io,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError},
    time::{Duration, Instant},
};

use super::stderr;
use crate::clock;

/// The exit status of a process that was ended after the end of its input.
const ABANDONED: i32 = 1;
/// Added to the number of a signal for the exit status of the process that it ended, as shells do.
const SIGNALLED: i32 = 128;
/// The time after the grace period for cancelled handlers to end and for replies to be read.
const CLEANUP: Duration = Duration::from_secs(3);

/// The reason for which a server ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Cause {
    EndOfInput,
    /// The number of the last signal.
    Signal(i32),
}

impl Cause {
    fn status(self) -> i32 {
        match self {
            Self::EndOfInput => ABANDONED,
            Self::Signal(number) => SIGNALLED + number,
        }
    }
}

/// The state machine of a shutdown. Times are arguments.
#[derive(Debug)]
struct Shutdown {
    cause: Option<Cause>,
    signals: u32,
    /// The time from the cause until the process is ended. `None`: the server does not run yet.
    limit: Option<Duration>,
    /// The time until the process is ended after a second signal.
    after_second: Duration,
    deadline: Option<Instant>,
    is_over: bool,
    is_announced: bool,
}

impl Shutdown {
    fn new(after_second: Duration) -> Self {
        Self {
            cause: None,
            signals: 0,
            limit: None,
            after_second,
            deadline: None,
            is_over: false,
            is_announced: false,
        }
    }

    fn started(&mut self, now: Instant, limit: Duration) {
        self.limit = Some(limit);
        if self.cause.is_some() {
            self.arm(now, limit);
        }
    }

    fn end_of_input(&mut self, now: Instant) {
        if self.cause.is_none() && !self.is_over {
            self.cause = Some(Cause::EndOfInput);
            if let Some(limit) = self.limit {
                self.arm(now, limit);
            }
        }
    }

    /// Handles a signal: the first one gives the handlers time, the second one doesn't. `count` is the number of signals
    /// so far; a smaller number than before has no effect. Returns `true` for the first signal.
    fn signal(&mut self, now: Instant, number: i32, count: u32) -> bool {
        if count <= self.signals || self.is_over {
            return false;
        }
        let is_first = self.signals == 0;
        self.signals = count;
        self.cause = Some(Cause::Signal(number));
        if count > 1 {
            self.arm(now, self.after_second);
        } else if let Some(limit) = self.limit {
            self.arm(now, limit);
        }
        is_first
    }

    /// Handles the end of the handlers. A second signal still ends the process.
    fn handlers_ended(&mut self) {
        if self.signals < 2 {
            self.deadline = None;
        }
    }

    fn over(&mut self) {
        self.is_over = true;
        self.deadline = None;
    }

    fn arm(&mut self, now: Instant, limit: Duration) {
        let deadline = now.checked_add(limit);
        self.deadline = [self.deadline, deadline].into_iter().flatten().min();
    }

    /// Returns the status with which the process must end now.
    fn expired(&self, now: Instant) -> Option<i32> {
        let is_expired = self.deadline.is_some_and(|deadline| deadline <= now);
        self.cause.filter(|_| is_expired).map(Cause::status)
    }

    /// Returns the message about what a first signal waits for, once.
    fn announcement(&mut self, running: &[String]) -> Option<String> {
        let is_waiting = self.signals == 1 && self.deadline.is_some() && !running.is_empty();
        if !is_waiting || std::mem::replace(&mut self.is_announced, true) {
            return None;
        }
        let grace = self.limit?.saturating_sub(CLEANUP).as_secs_f64();
        Some(format!(
            "gudgeon: waiting up to {grace} s for {}; a second Ctrl-C or SIGTERM ends the process at once",
            running.join(", ")
        ))
    }

    /// Returns the message about handlers that still run; `None` after a second signal, which wanted exactly this.
    fn message(&self, running: &[String]) -> Option<String> {
        let (cause, limit) = (self.cause?, self.limit?);
        if self.signals > 1 {
            return None;
        }
        let after = match cause {
            Cause::EndOfInput => "the client disconnected".to_owned(),
            Cause::Signal(number) => format!("signal {number}"),
        };
        let of = match running {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        Some(format!(
            "gudgeon: a handler still blocked the process {} s after {after}{of}: ending it with status {}; a handler must not \
             block the event loop, and must end when it is cancelled",
            limit.as_secs_f64(),
            cause.status(),
        ))
    }
}

type Names = Box<dyn Fn() -> Vec<String> + Send>;
type IsNeeded = Box<dyn Fn() -> bool + Send>;

/// The watchdog of a process. Clones share it.
#[derive(Clone)]
pub struct Watchdog {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    exit: fn(i32),
}

struct State {
    shutdown: Shutdown,
    has_thread: bool,
    names: Option<Names>,
    is_needed: Option<IsNeeded>,
}

impl Watchdog {
    /// Creates a watchdog that ends the process by `exit`, which must not return or wait for other threads.
    /// `after_second` is the time that the host has to end the process itself after a second signal.
    pub fn new(exit: fn(i32), after_second: Duration) -> Self {
        let state = State {
            shutdown: Shutdown::new(after_second),
            has_thread: false,
            names: None,
            is_needed: None,
        };
        Self {
            shared: Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), exit }),
        }
    }

    /// Starts to watch a server: its process ends once `grace`, and a time for cancelled handlers, have passed after the
    /// end of the input or a signal, unless [`handlers_ended`](Self::handlers_ended) is called before. `names` returns the
    /// handlers that run.
    pub fn watch(&self, grace: Duration, names: impl Fn() -> Vec<String> + Send + 'static) {
        let mut state = self.shared.lock();
        state.names = Some(Box::new(names));
        state.shutdown.started(clock::now(), grace.saturating_add(CLEANUP));
        self.update(state);
    }

    /// Reports that the client has closed the input. Later calls have no effect.
    pub fn end_of_input(&self) {
        let mut state = self.shared.lock();
        state.shutdown.end_of_input(clock::now());
        self.update(state);
    }

    /// Reports a signal. `count` is the number of signals so far; reports of the same signal have no effect. Returns
    /// `true` for the first signal.
    pub fn signal(&self, number: i32, count: u32) -> bool {
        let mut state = self.shared.lock();
        let is_first = state.shutdown.signal(clock::now(), number, count);
        self.update(state);
        is_first
    }

    /// Returns whether a signal has arrived.
    pub fn has_signal(&self) -> bool {
        self.shared.lock().shutdown.signals > 0
    }

    /// Reports that no handler runs any more that could block the process. A second signal still ends it.
    pub fn handlers_ended(&self) {
        let mut state = self.shared.lock();
        state.shutdown.handlers_ended();
        self.update(state);
    }

    /// Ends the process at the deadline only if this still holds then.
    pub(crate) fn only_if(&self, is_needed: impl Fn() -> bool + Send + 'static) {
        self.shared.lock().is_needed = Some(Box::new(is_needed));
    }

    /// Never ends the process from now on.
    pub fn over(&self) {
        let mut state = self.shared.lock();
        state.shutdown.over();
        self.update(state);
    }

    /// Starts a thread that receives SIGTERM and SIGINT, which no longer end the process by themselves; `on_first` is
    /// called at the first one. Handlers that were installed before are called as well.
    ///
    /// # Errors
    /// Errors if the handlers can't be installed or the thread can't be started.
    #[cfg(unix)]
    pub fn receive_signals(&self, on_first: impl FnOnce() + Send + 'static) -> io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};

        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let entered = runtime.enter();
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        drop(entered);
        let (watchdog, mut on_first) = (self.clone(), Some(on_first));
        let receive = async move {
            let (terminates, interrupts) = (SignalKind::terminate(), SignalKind::interrupt());
            for count in 1.. {
                let kind = tokio::select! {
                    _ = terminate.recv() => terminates,
                    _ = interrupt.recv() => interrupts,
                };
                if watchdog.signal(kind.as_raw_value(), count)
                    && let Some(on_first) = on_first.take()
                {
                    on_first();
                }
            }
        };
        let thread = std::thread::Builder::new().name("gudgeon-signals".into());
        thread.spawn(move || runtime.block_on(receive)).map(drop)
    }

    /// Without signals of Unix, only Ctrl-C is received, and only the first one.
    #[cfg(not(unix))]
    pub fn receive_signals(&self, on_first: impl FnOnce() + Send + 'static) -> io::Result<()> {
        const INTERRUPT: i32 = 2;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let watchdog = self.clone();
        let receive = move || {
            let first = runtime.block_on(tokio::signal::ctrl_c());
            if first.is_ok() && watchdog.signal(INTERRUPT, 1) {
                on_first();
            }
        };
        let thread = std::thread::Builder::new().name("gudgeon-signals".into());
        thread.spawn(receive).map(drop)
    }

    /// Wakes the thread that waits for the deadline, or starts it at the first one.
    fn update(&self, mut state: MutexGuard<'_, State>) {
        if state.has_thread {
            self.shared.changed.notify_all();
            return;
        }
        if state.shutdown.deadline.is_none() {
            return;
        }
        state.has_thread = true;
        drop(state);
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("gudgeon-watchdog".into());
        if thread.spawn(move || shared.wait()).is_err() {
            self.shared.lock().has_thread = false;
        }
    }
}

impl Shared {
    /// Waits for the deadline and ends the process.
    fn wait(&self) {
        let mut state = self.lock();
        // Calls that were cancelled meanwhile are not among those that run at the deadline.
        let at_first = state.names.as_ref().map(|names| names()).unwrap_or_default();
        loop {
            let now = clock::now();
            if let Some(status) = state.shutdown.expired(now) {
                if state.is_needed.as_ref().is_none_or(|is_needed| is_needed()) {
                    let last = state.names.as_ref().map(|names| names()).unwrap_or_default();
                    let running = if last.is_empty() { at_first } else { last };
                    if let Some(message) = state.shutdown.message(&running) {
                        stderr::try_write(&message);
                    }
                    drop(state);
                    (self.exit)(status);
                    return;
                }
                state.shutdown.over();
                return;
            }
            if let Some(message) = state.shutdown.announcement(&at_first) {
                stderr::try_write(&message);
            }
            let left =
                state.shutdown.deadline.map(|deadline| deadline.saturating_duration_since(now));
            state = match left {
                Some(left) => {
                    self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks the state of a server whose process ends. Returns `None` if another thread does not release it within 100 ms, such as
/// one that writes to a log which nobody reads.
pub(super) fn lock_soon<T>(state: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..100 {
        match state.try_lock() {
            Ok(locked) => return Some(locked),
            Err(TryLockError::Poisoned(error)) => return Some(error.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::sleep(Duration::from_millis(1)),
        }
    }
    None
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Watchdog").field(&self.shared.lock().shutdown).finish()
    }
}

#[cfg(test)]
mod tests;
