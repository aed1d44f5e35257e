//! The interface between the protocol and the handlers in JavaScript: batches of work out, replies in.

use std::{
    os::{
        fd::{IntoRawFd, OwnedFd},
        unix::net::UnixStream,
    },
    sync::Arc,
    time::Duration,
};

use gudgeon::{
    bindings::logs,
    driver::{EndpointServer, Work},
    engine::RunId,
    protocol::{LoggingLevel, Method, Question, Raw, json, json::ObjectWriter},
    session::server::{CallContext, Progress},
};
use napi::{Env, JsString};
use napi_derive::napi;

use crate::{
    batch::refusal,
    error::misuse,
    mounted::REQUEST,
    questions::NativeQuestions,
    shared::{Shared, lock},
    spans,
};

/// The use of a session's values by a call.
#[napi(object)]
#[derive(Debug)]
pub struct SessionUse {
    /// Their changes in the store since the last use, as JSON: `[name, value]`, or `[name]` if it was removed. Without a store
    /// undefined.
    pub changes: Option<String>,
    /// True if all values of before are to be removed first.
    pub replaces: bool,
    /// The sessions that have ended, among those named in contexts.
    pub ended: Vec<u32>,
}

#[napi]
#[derive(Debug)]
pub struct NativeWorkQueue {
    shared: Arc<Shared>,
    peer: Option<UnixStream>,
}

impl NativeWorkQueue {
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }
}

#[napi]
impl NativeWorkQueue {
    /// Returns the next batch, or null if nothing waits.
    #[napi(catch_unwind)]
    pub fn take_batch(&self) -> Option<String> {
        self.shared.take_batch()
    }

    /// Returns a large string of the input of a call: the one with this index among the names at the end of its entry.
    /// Returns null after the call was cancelled.
    #[napi(catch_unwind)]
    pub fn take_text<'a>(
        &self,
        env: &'a Env,
        slot: f64,
        index: u32,
    ) -> napi::Result<Option<JsString<'a>>> {
        let text = self.shared.take_text(integer(slot), index as usize);
        text.map(|text| text.into_js(env)).transpose()
    }

    /// Accepts replies of handlers: one line each, `slot kind payload`, and the strings that lines refer to by index.
    /// Returns `true` if some client leaves so much unread that its handlers have to wait; `mayStart` tells whose.
    #[napi(catch_unwind)]
    pub fn reply(&self, lines: String, texts: Option<Vec<String>>) -> bool {
        self.shared.reply(&lines, texts.unwrap_or_default());
        self.shared.io().is_some_and(|io| io.endpoint().has_backlog())
    }

    /// Returns whether the handler of a call may start. It may not while its client leaves too much unread.
    #[napi(catch_unwind)]
    pub fn may_start(&self, slot: f64) -> bool {
        let slot = integer(slot);
        let Some(io) = self.shared.io() else { return true };
        let context = lock(&self.shared.batches).context(slot).cloned();
        context.is_none_or(|context| io.endpoint().may_start(RunId(slot), &context))
    }

    /// Returns `true` if there is room for more.
    #[napi(catch_unwind)]
    pub fn progress(
        &self,
        slot: f64,
        progress: f64,
        total: Option<f64>,
        message: Option<String>,
    ) -> bool {
        self.on_behalf_of(slot, |endpoint, run| {
            endpoint.progress(run, Progress { progress, total, message });
            Work::default()
        })
    }

    /// `data` is JSON. Returns `true` if there is room for more.
    #[napi(catch_unwind)]
    pub fn log(
        &self,
        slot: f64,
        level: String,
        logger: Option<String>,
        data: String,
    ) -> napi::Result<bool> {
        let level: LoggingLevel = level.parse().map_err(misuse)?;
        Ok(self.on_behalf_of(slot, |endpoint, run| {
            endpoint.log(run, level, logger, json::raw(data));
            Work::default()
        }))
    }

    /// Returns the context of a call that is still in flight, as JSON.
    #[napi(catch_unwind)]
    pub fn facts(&self, slot: f64) -> Option<String> {
        let context = lock(&self.shared.batches).context(integer(slot))?.clone();
        let new = || self.shared.number_session();
        let session = *lock(&self.shared.sessions).entry(&context.client, new);
        Some(facts(&context, session))
    }

    /// Has spans made of requests that are answered without a handler.
    #[napi(catch_unwind)]
    pub fn trace_requests(&self) {
        self.shared.components.components().server.traces.turn_on();
    }

    /// Returns the span of a call for this method, of the tool or prompt `name`, as JSON; null if the call has ended.
    #[napi(catch_unwind)]
    pub fn span(&self, slot: f64, method: String, name: Option<String>) -> Option<String> {
        let span = lock(&self.shared.batches).span(integer(slot), &method, name.as_deref())?;
        Some(spans::as_json(&span))
    }

    /// Returns the event that ready-made middleware logs about the request of a call, as JSON. `text` are the params or the error, as far
    /// as they are to be logged.
    #[napi(catch_unwind)]
    pub fn request_event(
        &self,
        slot: f64,
        stage: String,
        method: String,
        named: Option<String>,
        text: Option<String>,
        milliseconds: f64,
    ) -> String {
        let after = Duration::try_from_secs_f64(milliseconds / 1000.0).unwrap_or_default();
        let context = lock(&self.shared.batches).context(integer(slot)).cloned();
        let (named, text) = (named.as_deref(), text.as_deref());
        let event = logs::request_event(&stage, &method, named, text, after, context.as_ref());
        crate::logs::as_json(event).to_string()
    }

    /// Begins to use the values of the session of a call; null if the call has ended. Fails if the store does not answer.
    #[napi(catch_unwind)]
    pub fn use_session(&self, slot: f64) -> napi::Result<Option<SessionUse>> {
        let Some(context) = lock(&self.shared.batches).context(integer(slot)).cloned() else {
            return Ok(None);
        };
        let new = || self.shared.number_session();
        let mut sessions = lock(&self.shared.sessions);
        let (changes, replaces) = match context.session_values.as_deref() {
            None => {
                context.client.keep_values();
                (None, false)
            }
            Some(Ok(stored)) => {
                let (_, update) = sessions.with_values(&context.client, stored, new);
                (Some(changes_json(&update.changes)), update.replaces)
            }
            Some(Err(reason)) => {
                return Err(napi::Error::from_reason(format!(
                    "ctx.session can't be read: {reason}"
                )));
            }
        };
        Ok(Some(SessionUse { changes, replaces, ended: sessions.take_ended() }))
    }

    /// Notes the values of the session as the handler of a call leaves them, a JSON object, for the store; null if they have no JSON.
    #[napi(catch_unwind)]
    pub fn left_session(&self, slot: f64, values: Option<String>) {
        let context = lock(&self.shared.batches).context(integer(slot)).cloned();
        let Some(context) = context else { return };
        let mut sessions = lock(&self.shared.sessions);
        let Some(values) = values else { return sessions.spoil(&context.client) };
        let left = sessions.changes_of(&context.client, &values);
        drop(sessions);
        self.on_behalf_of(slot, |endpoint, run| {
            endpoint.left_values(run, left);
            Work::default()
        });
    }

    /// Returns the answer to a question that came with the call, as JSON; `params` is JSON.
    #[napi(catch_unwind)]
    pub fn answer(&self, slot: f64, key: String, method: String, params: String) -> Option<String> {
        let batches = lock(&self.shared.batches);
        let answers = &batches.context(integer(slot))?.answers;
        answers.get(&key, Method::parse(&method)?, &params).map(|answer| answer.get().to_owned())
    }

    /// Rejects the answer that came with the call because of `problem`. Returns the failure as JSON if the question
    /// can't be asked again; null otherwise. `params` is JSON.
    #[napi(catch_unwind)]
    pub fn refuse(
        &self,
        slot: f64,
        key: String,
        method: String,
        params: String,
        problem: String,
    ) -> Option<String> {
        let question = Question { key, method: Method::parse(&method)?, params: json::raw(params) };
        let batches = lock(&self.shared.batches);
        let fault = batches.context(integer(slot))?.answers.refuse(&question, &problem).err()?;
        Some(refusal(fault))
    }

    /// Begins to ask questions together: their keys, methods, and params as JSON. Returns null if the handler has ended.
    #[napi(catch_unwind)]
    pub fn ask(
        &self,
        slot: f64,
        keys: Vec<String>,
        methods: Vec<String>,
        params: Vec<String>,
    ) -> Option<NativeQuestions> {
        let questions =
            keys.into_iter().zip(methods).zip(params).filter_map(|((key, method), params)| {
                Some(Question { key, method: Method::parse(&method)?, params: json::raw(params) })
            });
        let asked = lock(&self.shared.batches).ask(integer(slot), questions.collect())?;
        Some(NativeQuestions::new(Arc::clone(&self.shared), asked))
    }

    /// Reports that handlers have asked all questions of this iteration of the event loop.
    #[napi(catch_unwind)]
    pub fn waits(&self, slots: Vec<f64>) {
        self.shared.waits(slots.into_iter().map(integer));
    }

    /// Returns the result that a step had in an earlier run of the call's handler, as JSON.
    #[napi(catch_unwind)]
    pub fn known_step(&self, slot: f64, key: String) -> Option<String> {
        let batches = lock(&self.shared.batches);
        let step = batches.context(integer(slot))?.answers.step(&key)?;
        Some(step.get().to_owned())
    }

    /// Records the result of a step. `value` is JSON.
    #[napi(catch_unwind)]
    pub fn step(&self, slot: f64, key: String, value: String) {
        self.on_behalf_of(slot, |endpoint, run| {
            endpoint.step(run, &key, json::raw(value));
            Work::default()
        });
    }

    /// Closes the call's response stream; the client reconnects for the answer, after this many milliseconds if given.
    #[napi(catch_unwind)]
    pub fn close_stream(&self, slot: f64, retry: Option<f64>) {
        let retry =
            retry.and_then(|milliseconds| Duration::try_from_secs_f64(milliseconds / 1000.0).ok());
        self.on_behalf_of(slot, |endpoint, run| {
            endpoint.close_stream(run, retry);
            Work::default()
        });
    }

    /// Returns `true` if a handler may send more.
    #[napi(catch_unwind)]
    pub fn has_room(&self) -> bool {
        self.shared.io().is_none_or(|io| io.has_room())
    }

    /// Stops reading the input.
    #[napi(catch_unwind)]
    pub fn pause(&self) {
        if let Some(io) = self.shared.io() {
            self.shared.push(io.pause());
            io.flush();
        }
    }

    /// Returns the number of unanswered requests and running handlers.
    #[napi(catch_unwind)]
    pub fn under_way(&self) -> u32 {
        let in_flight = self.shared.io().map_or(0, |io| io.endpoint().in_flight());
        let running = lock(&self.shared.batches).running();
        u32::try_from(in_flight.max(running)).unwrap_or(u32::MAX)
    }

    /// Returns the number of unread bytes.
    #[napi(catch_unwind)]
    pub fn unwritten(&self) -> f64 {
        let bytes = self.shared.io().map_or(0, |io| io.unwritten());
        f64::from(u32::try_from(bytes).unwrap_or(u32::MAX))
    }

    /// Cancels everything in flight: the cancellation of each call is in the next batch.
    #[napi(catch_unwind)]
    pub fn cancel_all(&self) {
        self.shared.call(EndpointServer::close);
    }

    /// Closes the stream; it no longer keeps the process alive.
    #[napi(catch_unwind)]
    pub fn close(&self) {
        self.shared.close();
    }

    /// Returns the other end of an in-memory stream, as a file descriptor owned by the caller.
    #[napi(catch_unwind)]
    pub fn take_peer(&mut self) -> Option<i32> {
        self.take_peer_stream().map(|stream| OwnedFd::from(stream).into_raw_fd())
    }
}

impl NativeWorkQueue {
    pub(crate) fn new(shared: Arc<Shared>, peer: Option<UnixStream>) -> Self {
        Self { shared, peer }
    }

    /// Takes the other end of an in-memory stream, for a client in this process.
    pub(crate) fn take_peer_stream(&mut self) -> Option<UnixStream> {
        self.peer.take()
    }

    /// Calls the server on behalf of a running handler. Returns `true` if there is room for more.
    fn on_behalf_of(&self, slot: f64, call: impl FnOnce(&EndpointServer, RunId) -> Work) -> bool {
        if let Some(run) = self.awaited(slot) {
            self.shared.call(|endpoint| call(endpoint, run));
        }
        self.has_room()
    }

    fn awaited(&self, slot: f64) -> Option<RunId> {
        let slot = integer(slot);
        lock(&self.shared.batches).context(slot).map(|_| RunId(slot))
    }
}

// Without an event loop, for example after a worker thread has ended, there is no one to answer.
impl Drop for NativeWorkQueue {
    fn drop(&mut self) {
        self.shared.close();
    }
}

fn changes_json(changes: &[(String, Option<Raw>)]) -> String {
    let entries = changes.iter().map(|(name, value)| match value {
        Some(value) => json::to_raw(&(name, value)),
        None => json::to_raw(&[name]),
    });
    json::to_raw(&entries.collect::<Vec<_>>()).get().to_owned()
}

fn facts(context: &CallContext, session: u32) -> String {
    let mut facts = ObjectWriter::with_capacity(256);
    facts.member("hasSession", &context.has_session());
    if let Some(remote) = context.remote {
        facts.member("remote", &remote);
    }
    facts.member("session", &session);
    if let Some(meta) = &context.meta {
        facts.raw("meta", meta.get());
    }
    if let Some(info) = &context.client.info {
        facts.raw("client", info.get());
    }
    if let Some(capabilities) = &context.client.capabilities {
        facts.raw("capabilities", capabilities.get());
    }
    if let Some(principal) = &context.principal {
        facts.member("principal", &**principal);
    }
    if let Some(http) = &context.http {
        if let Some(id) = &http.session_id {
            facts.member("sessionId", &**id);
        }
        // Bytes beyond ASCII are Latin-1, as everywhere in HTTP.
        let text = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect::<String>();
        let headers: Vec<(&str, String)> = http
            .headers
            .iter()
            .filter(|(name, _)| **name != REQUEST)
            .map(|(name, value)| (name.as_str(), text(value.as_bytes())))
            .collect();
        facts.member("headers", &headers);
        if let Some(request) = http.headers.get(REQUEST) {
            facts.member("request", &text(request.as_bytes()));
        }
    }
    facts.finish()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "slots and numbers are integers"
)]
pub(crate) fn integer(number: f64) -> u64 {
    number as u64
}
