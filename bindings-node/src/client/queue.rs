//! Events of clients for JavaScript: written as JSON by the threads that find them, taken and parsed once per batch.
//!
//! An entry is an array. If it begins with a number, it belongs to the request of that number: `[n, 0, result, data?]`
//! is its result, `[n, 1, error]` its failure, `[n, 2, progress]` a progress report, `[n, 3, result]` a result that
//! asks for input. An entry that begins with a string is a notification.

use std::{collections::VecDeque, sync::Mutex};

use gudgeon::{
    bindings::{
        client_questions::Asked,
        reconnecting::{Notice, Reconnected},
    },
    client::{ListKind, LogMessage, Progress, Reply, ServerIdentity, describe},
    error::Error,
    protocol::json::{self, ObjectWriter},
};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;

use crate::shared::{Wake, lock};

/// The target size of a batch; the last entry may exceed it.
const BATCH: usize = 1024 * 1024;
/// The maximum size of queued notifications; beyond it they are dropped, so that a blocked event loop does not cost
/// memory.
const MAX_UNASKED: usize = 16 * 1024 * 1024;

/// The batches, and the wake-up that announces them; it does not keep the process alive, because JavaScript decides
/// that.
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Mutex<Option<Wake<true>>>,
}

#[derive(Debug, Default)]
struct Waiting {
    batches: VecDeque<String>,
    bytes: usize,
    /// Lists that have changed; they are sent with the next batch.
    changed: Vec<ListKind>,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.batches.is_empty() && self.changed.is_empty()
    }
}

impl Queue {
    pub(super) fn new(wake: Wake<true>) -> Self {
        Self { waiting: Mutex::default(), wake: Mutex::new(Some(wake)) }
    }

    /// Returns the next batch as a JSON array.
    pub(super) fn take(&self) -> Option<String> {
        let mut waiting = lock(&self.waiting);
        if waiting.is_empty() {
            return None;
        }
        let mut batch = waiting.batches.pop_front().unwrap_or_default();
        waiting.bytes -= batch.len();
        let changed = std::mem::take(&mut waiting.changed);
        let has_more = !waiting.batches.is_empty();
        drop(waiting);
        for list in changed {
            batch.push_str(if batch.is_empty() { "[[" } else { ",[" });
            batch.push_str("\"changed\",");
            json::push_string(&mut batch, list.as_str());
            batch.push(']');
        }
        batch.push(']');
        if has_more {
            self.wake();
        }
        Some(batch)
    }

    /// Drops the wake-up, because the receiver is closed.
    pub(super) fn release(&self) {
        lock(&self.wake).take();
    }

    pub(super) fn reply(&self, number: u32, outcome: Result<Reply, Error>) {
        self.push(|entry| {
            entry.push_str(&number.to_string());
            match outcome {
                Ok(Reply { result, is_input_required: true, .. }) => {
                    entry.push_str(",3,");
                    entry.push_str(result.get());
                }
                Ok(Reply { result, data, .. }) => {
                    entry.push_str(",0,");
                    entry.push_str(result.get());
                    if let Some(data) = data {
                        entry.push(',');
                        entry.push_str(data.get());
                    }
                }
                Err(error) => {
                    entry.push_str(",1,");
                    entry.push_str(&describe(&error, &error.message));
                }
            }
        });
    }

    pub(super) fn connected(&self, server: &ServerIdentity) {
        let mut facts = ObjectWriter::with_capacity(256);
        facts
            .member("server", &server.info)
            .member("revision", server.spoken().name())
            .member("capabilities", &server.capabilities);
        if let Some(instructions) = &server.instructions {
            facts.member("instructions", instructions);
        }
        let result = json::raw(facts.finish());
        self.reply(0, Ok(Reply { result, data: None, is_input_required: false }));
    }

    pub(super) fn progress(&self, number: u32, step: &Progress) {
        let mut event = ObjectWriter::with_capacity(64);
        event.member("progress", &step.progress);
        if let Some(total) = step.total {
            event.member("total", &total);
        }
        if let Some(message) = &step.message {
            event.member("message", message);
        }
        self.push_unasked(|entry| {
            entry.push_str(&number.to_string());
            entry.push_str(",2,");
            entry.push_str(&event.finish());
        });
    }

    pub(super) fn log(&self, message: &LogMessage) {
        let mut event = ObjectWriter::with_capacity(64);
        event.member("level", &message.level).member("data", &message.data);
        if let Some(logger) = &message.logger {
            event.member("logger", logger);
        }
        self.push_unasked(|entry| {
            entry.push_str("\"log\",");
            entry.push_str(&event.finish());
        });
    }

    pub(super) fn notice(&self, notice: &Notice) {
        match notice {
            Notice::UrlDone(elicitation) => self.push_unasked(|entry| {
                entry.push_str("\"urlDone\",");
                json::push_string(entry, elicitation);
            }),
            Notice::Reconnected(it) => {
                let Reconnected { attempt, reason, .. } = &**it;
                self.push_unasked(|entry| {
                    let mut event = ObjectWriter::with_capacity(128);
                    event
                        .member("attempt", attempt)
                        .raw("reason", &describe(reason, &reason.message));
                    entry.push_str("\"reconnected\",");
                    entry.push_str(&event.finish());
                });
            }
            Notice::Lost(reason) => self.push(|entry| {
                entry.push_str("\"closed\",");
                json::push_string(entry, reason);
            }),
        }
    }

    /// Records a changed list; repeated changes are merged, and none is dropped.
    pub(super) fn changed(&self, list: ListKind) {
        let mut waiting = lock(&self.waiting);
        let was_empty = waiting.is_empty();
        if !waiting.changed.contains(&list) {
            waiting.changed.push(list);
        }
        drop(waiting);
        if was_empty {
            self.wake();
        }
    }

    /// Queues a question. The answer of a callback whose question was withdrawn is ignored.
    pub(super) fn ask(&self, asked: Asked<'_>) {
        let Asked::Question(number, option, question) = asked else { return };
        self.push(|entry| {
            entry.push_str("\"ask\",");
            entry.push_str(&number.to_string());
            entry.push(',');
            json::push_string(entry, option);
            entry.push(',');
            entry.push_str(question.params.get());
            if let Some(key) = &question.key {
                entry.push(',');
                json::push_string(entry, key);
            }
        });
    }

    fn push_unasked(&self, write: impl FnOnce(&mut String)) {
        if lock(&self.waiting).bytes <= MAX_UNASKED {
            self.push(write);
        }
    }

    /// Wakes the event loop only if it is idle, so that many entries cost one wake-up.
    fn push(&self, write: impl FnOnce(&mut String)) {
        let mut waiting = lock(&self.waiting);
        let was_empty = waiting.is_empty();
        if waiting.batches.back().is_none_or(|it| it.len() > BATCH) {
            waiting.batches.push_back(String::with_capacity(1024));
        }
        let Waiting { batches, bytes, .. } = &mut *waiting;
        if let Some(batch) = batches.back_mut() {
            let before = batch.len();
            batch.push(if batch.is_empty() { '[' } else { ',' });
            batch.push('[');
            write(batch);
            batch.push(']');
            *bytes += batch.len() - before;
        }
        drop(waiting);
        if was_empty {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(wake) = &*lock(&self.wake) {
            wake.call((), ThreadsafeFunctionCallMode::NonBlocking);
        }
    }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue").field("waiting", &self.waiting).finish_non_exhaustive()
    }
}
