//! A server that answers what a recorded server answered.

use std::{
    collections::{HashMap, VecDeque},
    future::Future,
    pin::Pin,
    sync::Arc,
};

use gudgeon::protocol::code;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use super::{
    difference::differences,
    script::{Act, ScriptStep, acts, addressed, params},
};
use crate::{
    failure::Failure,
    frames::{
        Connection, Ended, MAX_WAITING, Upstream,
        message::{Kind, RawObject, error},
    },
    transcript::Entry,
};

const PROGRESS_TOKEN: &str = "progressToken";

/// A server made of a transcript.
pub struct RecordedServer {
    acts: Arc<Vec<Act>>,
}

impl RecordedServer {
    /// Creates a server that answers as in any of the recorded connections.
    pub fn new(connections: &[Vec<Entry>]) -> Self {
        Self {
            acts: Arc::new(connections.iter().flat_map(|connection| acts(connection)).collect()),
        }
    }
}

impl Upstream for RecordedServer {
    fn open(&self) -> Pin<Box<dyn Future<Output = Result<Connection, Failure>> + Send + '_>> {
        let (to_server, mut from_client) = mpsc::unbounded_channel::<Vec<u8>>();
        let (to_client, from_server) = mpsc::channel(MAX_WAITING);
        let (ending, ended) = oneshot::channel();
        let mut player = Player::new(Arc::clone(&self.acts));
        tokio::spawn(async move {
            while let Some(frame) = from_client.recv().await {
                for answer in player.receive(&frame) {
                    // A client that is gone is noticed by its input.
                    let _ = to_client.send(answer).await;
                }
            }
            drop(to_client);
            let _ = ending.send(Ended::default());
        });
        Box::pin(async { Ok(Connection { to_server, from_server, ended }) })
    }
}

/// The state of one connection.
struct Player {
    acts: Arc<Vec<Act>>,
    /// For each act, true once it was played.
    played: Vec<bool>,
    /// Recorded to present ids and progress tokens, as JSON text.
    ids: HashMap<String, String>,
    tokens: HashMap<String, String>,
    /// The steps that wait for an answer of the client, by the id of the question, with the id of the request.
    waiting: HashMap<String, (Option<String>, VecDeque<ScriptStep>)>,
    questions: u64,
}

impl Player {
    fn new(acts: Arc<Vec<Act>>) -> Self {
        Self {
            played: vec![false; acts.len()],
            acts,
            ids: HashMap::new(),
            tokens: HashMap::new(),
            waiting: HashMap::new(),
            questions: 0,
        }
    }

    /// Returns the messages that follow a message of the client.
    fn receive(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let Some(message) = RawObject::parse(frame) else {
            return vec![error("null", code::PARSE_ERROR, "this is not a JSON-RPC message")];
        };
        match message.kind() {
            Kind::Request { id, method } => self.request(&message, &id, &method),
            Kind::Notification { method } => {
                if method == "notifications/cancelled" {
                    let cancelled = params(&message).get("requestId").map(ToString::to_string);
                    self.waiting.retain(|_, waiting| waiting.0 != cancelled);
                }
                let found = self.find(&method, &params(&message));
                found.map_or_else(Vec::new, |index| self.play(index, None))
            }
            Kind::Response { id } => match self.waiting.remove(&id) {
                Some((request, steps)) => self.go_on(request, steps),
                None => Vec::new(),
            },
            Kind::Other => vec![error("null", code::INVALID_REQUEST, "there is no method")],
        }
    }

    fn request(&mut self, message: &RawObject, id: &str, method: &str) -> Vec<Vec<u8>> {
        let given = params(message);
        let Some(index) = self.find(method, &given) else {
            if method == "ping" {
                return vec![
                    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}").into_bytes(),
                ];
            }
            let (code, why) = self.unknown(method, &given);
            return vec![error(id, code, &why)];
        };
        let act = &self.acts[index];
        if let Some(recorded) = &act.id {
            self.ids.insert(recorded.clone(), id.to_owned());
        }
        if let (Some(recorded), Some(token)) = (&act.token, message.meta(PROGRESS_TOKEN)) {
            self.tokens.insert(recorded.clone(), token);
        }
        let has_response = act.has_response() || act.method == "subscriptions/listen";
        let line = act.line;
        let mut messages = self.play(index, Some(id.to_owned()));
        if !has_response {
            let why = format!("the recorded server never answered this request (line {line})");
            messages.push(error(id, code::INTERNAL_ERROR, &why));
        }
        messages
    }

    /// Returns the act for a message: the first one that was not played yet, else the last one.
    fn find(&self, method: &str, given: &Value) -> Option<usize> {
        // Clients differ in the handshake, which is matched by the revision if it was recorded.
        let is_handshake = method == "initialize";
        let version = |params: &Value| params.get("protocolVersion").cloned();
        let mut matching: Vec<_> = (0..self.acts.len())
            .filter(|index| self.acts[*index].method == method)
            .filter(|index| match is_handshake {
                true => version(&self.acts[*index].params) == version(given),
                false => differences("", &self.acts[*index].params, given).is_empty(),
            })
            .collect();
        if matching.is_empty() && is_handshake {
            matching =
                (0..self.acts.len()).filter(|index| self.acts[*index].method == method).collect();
        }
        let unplayed = matching.iter().copied().find(|index| !self.played[*index]);
        unplayed.or(matching.last().copied())
    }

    /// Returns the error for a request that was not recorded.
    fn unknown(&self, method: &str, given: &Value) -> (i64, String) {
        let same = self.acts.iter().filter(|act| act.method == method);
        let nearest = same
            .map(|act| (act.line, differences("params", &act.params, given)))
            .min_by_key(|candidate| candidate.1.len());
        match nearest {
            Some((line, differences)) => {
                let mut shown: Vec<_> = differences.iter().take(3).cloned().collect();
                if differences.len() > shown.len() {
                    shown.push(format!("{} more", differences.len() - shown.len()));
                }
                let shown = shown.join("; ");
                let why = format!(
                    "no {method} with these params was recorded; the nearest one, in line {line}, differs: {shown}"
                );
                (code::INVALID_PARAMS, why)
            }
            None => (code::METHOD_NOT_FOUND, format!("no {method} was recorded")),
        }
    }

    fn play(&mut self, index: usize, request: Option<String>) -> Vec<Vec<u8>> {
        self.played[index] = true;
        let steps = self.acts[index].steps.iter().cloned().collect();
        self.go_on(request, steps)
    }

    /// Returns the messages until the next question to the client.
    fn go_on(&mut self, request: Option<String>, mut steps: VecDeque<ScriptStep>) -> Vec<Vec<u8>> {
        let mut messages = Vec::new();
        while let Some(step) = steps.pop_front() {
            match step {
                ScriptStep::Notify(message) => {
                    let message = addressed(message, &self.ids, &self.tokens);
                    messages.extend(message.map(RawObject::into_bytes));
                }
                ScriptStep::Respond(mut message) => {
                    message.set_json("id", request.as_deref().unwrap_or("null"));
                    messages.push(message.into_bytes());
                }
                ScriptStep::Ask(mut message) => {
                    self.questions += 1;
                    let id = format!("\"replay-{}\"", self.questions);
                    message.set_json("id", &id);
                    messages.push(message.into_bytes());
                    self.waiting.insert(id, (request, steps));
                    break;
                }
            }
        }
        messages
    }
}
