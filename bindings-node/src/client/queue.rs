//! Events of clients for JavaScript: written as JSON by the threads that find them, taken and parsed in batches.
//!
//! An entry is an array. If it begins with a number, it belongs to the request of that number: `[n, 0, result, data?]`
//! is its result, `[n, 1, error]` its failure, `[n, 2, progress]` a progress report, `[n, 3, result]` a result that
//! asks for input. `data` is `false` for a tool's result whose structured content is the data, `true` for one whose structured
//! content is an object around the data, and `[data]` for one whose text stands for the data. An entry that begins with a
//! string is a notification.

use std::{borrow::Cow, sync::Mutex, time::Instant};

use gudgeon::{
    bindings::{
        client_middleware::WaitingRequest,
        client_notice::Notice,
        client_questions::Asked,
        mailbox::{Kind, Mailbox},
    },
    client::{ListKind, LogMessage, OperationReply, Progress, ServerIdentity, describe},
    error::Error,
    peer::ToolData,
    protocol::json::{self, ObjectWriter},
};
use napi::threadsafe_function::ThreadsafeFunctionCallMode;

use super::thrown::error_json;
use crate::{
    big_integers::marked,
    shared::{Wake, lock},
};

/// The number of the client in its mailbox. Each client has a mailbox of its own, so all have the same number.
const CLIENT: u64 = u64::MAX;

/// The events that wait, and the wake-up that announces them; it does not keep the process alive, because JavaScript
/// decides that.
pub(super) struct Queue {
    mailbox: Mutex<Mailbox<String>>,
    wake: Mutex<Option<Wake<true>>>,
}

impl Queue {
    pub(super) fn new(wake: Wake<true>) -> Self {
        Self { mailbox: Mutex::default(), wake: Mutex::new(Some(wake)) }
    }

    /// Returns the next outcomes of requests, and at most one other event, as a JSON array. The caller takes batches until
    /// nothing is left: only the first event wakes the event loop.
    pub(super) fn take(&self) -> Option<String> {
        let entries = lock(&self.mailbox).take(Instant::now());
        if entries.is_empty() {
            return None;
        }
        let size: usize = entries.iter().map(|entry| entry.len() + 1).sum();
        let mut batch = String::with_capacity(size + 1);
        for entry in &entries {
            batch.push(if batch.is_empty() { '[' } else { ',' });
            batch.push_str(entry);
        }
        batch.push(']');
        Some(batch)
    }

    /// Drops the wake-up, because the receiver is closed.
    pub(super) fn release(&self) {
        lock(&self.wake).take();
    }

    pub(super) fn reply(&self, number: u32, outcome: Result<OperationReply, Error>) {
        self.push_reply(number, outcome, as_it_is);
    }

    /// Adds a result as `reply` does; integers that a number can't hold become `BigInt`s.
    pub(super) fn values(&self, number: u32, outcome: Result<OperationReply, Error>) {
        self.push_reply(number, outcome, marked);
    }

    fn push_reply(
        &self,
        number: u32,
        outcome: Result<OperationReply, Error>,
        written: impl Fn(&str) -> Cow<'_, str>,
    ) {
        let number = u64::from(number);
        self.push(number, Kind::Outcome, |entry| {
            entry.push_str(&number.to_string());
            match outcome {
                Ok(OperationReply { result, is_input_required: true, .. }) => {
                    entry.push_str(",3,");
                    entry.push_str(&written(result.get()));
                }
                Ok(OperationReply { result, data, .. }) => {
                    entry.push_str(",0,");
                    entry.push_str(&written(result.get()));
                    match data {
                        None => (),
                        Some(ToolData::Structured { is_unwrapped, .. }) => {
                            entry.push_str(if is_unwrapped { ",true" } else { ",false" });
                        }
                        Some(ToolData::Text(json)) => {
                            entry.push_str(",[");
                            entry.push_str(&written(&json));
                            entry.push(']');
                        }
                    }
                }
                Err(error) => {
                    entry.push_str(",1,");
                    entry.push_str(&marked(&error_json(&error)));
                }
            }
        });
    }

    pub(super) fn connected(&self, server: &ServerIdentity) {
        let result = json::raw(facts(server));
        self.reply(0, Ok(result.into()));
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
        self.push(u64::from(number), Kind::Progress, |entry| {
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
        self.push(CLIENT, Kind::Notification, |entry| {
            entry.push_str("\"log\",");
            entry.push_str(&marked(&event.finish()));
        });
    }

    pub(super) fn notice(&self, notice: &Notice) {
        match notice {
            Notice::UrlDone(elicitation) => self.push(CLIENT, Kind::Notification, |entry| {
                entry.push_str("\"urlDone\",");
                json::push_string(entry, elicitation);
            }),
            Notice::Reconnected { attempt, reason, server } => {
                self.push(
                    CLIENT,
                    |_| Kind::Event,
                    |entry| {
                        let mut event = ObjectWriter::with_capacity(128);
                        event
                            .member("attempt", attempt)
                            .raw("reason", &describe(reason, &reason.message))
                            .raw("facts", &facts(server));
                        entry.push_str("\"reconnected\",");
                        entry.push_str(&event.finish());
                    },
                );
            }
            Notice::Lost(reason) => self.push(
                CLIENT,
                |_| Kind::Event,
                |entry| {
                    entry.push_str("\"closed\",");
                    json::push_string(entry, reason);
                },
            ),
        }
    }

    /// Passes a request to the middleware.
    pub(super) fn middleware(&self, request: &WaitingRequest) {
        self.push(
            CLIENT,
            |_| Kind::Event,
            |entry| {
                entry.push_str("\"middleware\",");
                entry.push_str(&request.number.to_string());
                entry.push(',');
                let ticket =
                    request.ticket.map_or_else(|| "null".into(), |ticket| ticket.to_string());
                entry.push_str(&ticket);
                entry.push(',');
                json::push_string(entry, &request.method);
                entry.push(',');
                entry.push_str(&marked(&request.params));
            },
        );
    }

    /// Records a changed list; repeated changes are merged, and none is dropped.
    pub(super) fn changed(&self, list: ListKind) {
        self.push(
            CLIENT,
            |_| Kind::Changed(list.as_str()),
            |entry| {
                entry.push_str("\"changed\",");
                json::push_string(entry, list.as_str());
            },
        );
    }

    /// Queues a question. The answer of a callback whose question was withdrawn is ignored.
    pub(super) fn ask(&self, asked: Asked<'_>) {
        let Asked::Question(number, option, question) = asked else { return };
        self.push(
            CLIENT,
            |_| Kind::Event,
            |entry| {
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
            },
        );
    }

    /// Queues a connection, a file descriptor on which the option `fetch` answers requests for this origin.
    pub(super) fn fetch(&self, connection: i32, origin: &str) {
        self.push(
            CLIENT,
            |_| Kind::Event,
            |entry| {
                entry.push_str("\"fetch\",");
                entry.push_str(&connection.to_string());
                entry.push(',');
                json::push_string(entry, origin);
            },
        );
    }

    /// Wakes the event loop only if it is idle, so that many entries cost one wake-up.
    fn push(&self, to: u64, kind: impl FnOnce(usize) -> Kind, write: impl FnOnce(&mut String)) {
        let mut entry = String::with_capacity(128);
        entry.push('[');
        write(&mut entry);
        entry.push(']');
        let kind = kind(entry.len());
        let mut mailbox = lock(&self.mailbox);
        let was_empty = mailbox.is_empty();
        let is_kept = mailbox.push(Instant::now(), Some(CLIENT), to, kind, entry);
        drop(mailbox);
        if was_empty && is_kept {
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
        f.debug_struct("Queue").field("mailbox", &self.mailbox).finish_non_exhaustive()
    }
}

/// Returns the server's identity as JSON.
fn facts(server: &ServerIdentity) -> String {
    let mut facts = ObjectWriter::with_capacity(256);
    facts
        .member("server", &server.info)
        .member("revision", server.spoken().name())
        .member("capabilities", &server.capabilities);
    if let Some(instructions) = &server.instructions {
        facts.member("instructions", instructions);
    }
    facts.finish()
}

fn as_it_is(json: &str) -> Cow<'_, str> {
    Cow::Borrowed(json)
}
