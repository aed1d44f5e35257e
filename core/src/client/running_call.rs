//! A call in progress: its options, and the times from which its limits count.

use std::{
    future::pending,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::time::sleep_until;

use super::{CallOptions, connection::RequestSettings, operation::Questioner};
use crate::{
    clock,
    error::Error,
    protocol::{Method, Raw},
    session::client::{CallTimes, took_too_long},
};

/// A call in progress. All its requests share its time limits: the pages of a list, the rounds of questions, and the
/// lists of tools that it needs.
pub(super) struct RunningCall {
    options: CallOptions,
    started: Instant,
    last_seen: Arc<Mutex<Instant>>,
    is_continued: AtomicBool,
}

impl RunningCall {
    pub(super) fn begin(options: CallOptions) -> Self {
        let now = clock::now();
        let last_seen = Arc::new(Mutex::new(now));
        Self { options, started: now, last_seen, is_continued: AtomicBool::new(false) }
    }

    /// Returns the part of the call that lists tools, without the callback and the `_meta` of the call.
    pub(super) fn listing(&self) -> Self {
        Self {
            options: CallOptions { meta: None, on_progress: None, ..self.options.clone() },
            started: self.started,
            last_seen: Arc::clone(&self.last_seen),
            is_continued: AtomicBool::new(false),
        }
    }

    pub(super) fn raises_on_error(&self) -> bool {
        self.options.raise_on_error
    }

    pub(super) fn is_passed_on(&self) -> bool {
        self.options.is_passed_on
    }

    /// Returns the function that answers the questions of this call, if the client's callbacks do not.
    pub(super) fn questioner(&self) -> Option<&Questioner> {
        self.options.questioner.as_ref()
    }

    pub(super) fn meta(&self) -> Option<&Raw> {
        self.options.meta.as_ref()
    }

    /// Returns the settings of the call's next request.
    pub(super) fn settings(&self) -> RequestSettings {
        let CallOptions { timeout, max_timeout, ref on_progress, .. } = self.options;
        let times = CallTimes {
            started: self.started,
            last_seen: read(&self.last_seen),
            is_continued: self.is_continued.load(Ordering::Relaxed),
        };
        let (last_seen, inner) = (Arc::clone(&self.last_seen), on_progress.clone());
        RequestSettings {
            timeout,
            max_timeout,
            // Without a limit the time of the progress does not matter.
            on_progress: (inner.is_some() || timeout.is_some()).then_some(Arc::new(move |step| {
                restart(&last_seen);
                if let Some(inner) = &inner {
                    inner(step);
                }
            })),
            is_passed_on: self.options.is_passed_on,
            times: Some(times),
        }
    }

    /// Records that a page has arrived and others follow. It does not restart the time limit, because a server could
    /// make the list endless.
    pub(super) fn next_page(&self) {
        self.is_continued.store(true, Ordering::Relaxed);
    }

    /// Restarts the time limit without progress: the user has answered a question, or the call has its result.
    pub(super) fn restart(&self) {
        restart(&self.last_seen);
    }

    /// Waits until the total time limit has passed, and returns the error.
    pub(super) async fn expired(&self, method: Method) -> Error {
        passed(self.options.max_timeout, self.started, method).await
    }

    /// Waits until either time limit has passed, and returns the error.
    pub(super) async fn timed_out(&self, method: Method) -> Error {
        tokio::select! {
            error = self.expired(method) => error,
            error = passed(self.options.timeout, read(&self.last_seen), method) => error,
        }
    }
}

/// Waits until a time limit has passed, and returns the error.
async fn passed(limit: Option<Duration>, since: Instant, method: Method) -> Error {
    match limit.and_then(|limit| Some((limit, since.checked_add(limit)?))) {
        Some((limit, end)) => {
            sleep_until(end.into()).await;
            took_too_long(method.as_str(), limit)
        }
        None => pending().await,
    }
}

fn read(time: &Mutex<Instant>) -> Instant {
    *time.lock().unwrap_or_else(PoisonError::into_inner)
}

fn restart(time: &Mutex<Instant>) {
    *time.lock().unwrap_or_else(PoisonError::into_inner) = clock::now();
}
