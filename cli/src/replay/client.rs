//! A client that sends what a recorded client sent, and compares the answers of the server with the recorded ones.

use std::{
    collections::{HashMap, VecDeque},
    time::Duration,
};

use gudgeon::protocol::code;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{difference::differences, script::params};
use crate::{
    failure::Failure,
    frames::{
        Connection, Upstream,
        message::{Kind, RawObject, error},
    },
    transcript::{Entry, Side},
};

/// The time for notifications after the last response.
const LAST: Duration = Duration::from_millis(500);
/// Members whose texts only the server understands; the client sends back what it got.
const OPAQUE: [&str; 2] = ["requestState", "nextCursor"];

/// The outcome of a comparison.
#[derive(Debug, Default)]
pub struct Comparison {
    /// The number of responses, questions and notifications that were compared.
    pub compared: usize,
    pub differences: Vec<Difference>,
}

/// A difference between a recorded message and the server's.
#[derive(Debug, serde::Serialize)]
pub struct Difference {
    /// The line of the recorded message; absent for a message that was not recorded.
    pub line: Option<usize>,
    /// The method, and the name of the tool, prompt or resource.
    pub of: String,
    #[serde(rename = "difference")]
    pub text: String,
}

/// Plays the recorded connections one after the other.
pub async fn compare(
    connections: &[Vec<Entry>],
    server: &dyn Upstream,
    limit: Duration,
) -> Result<Comparison, Failure> {
    let mut comparison = Comparison::default();
    for entries in connections {
        let player = Player {
            connection: server.open().await?,
            limit,
            responses: HashMap::new(),
            requests: VecDeque::new(),
            notifications: Vec::new(),
            sent: HashMap::new(),
            asked: HashMap::new(),
            replaced: HashMap::new(),
            comparison: &mut comparison,
        };
        player.play(entries).await;
    }
    Ok(comparison)
}

/// The state of one connection.
struct Player<'a> {
    connection: Connection,
    /// The time to wait for a message.
    limit: Duration,
    /// Messages of the server that were not compared yet.
    responses: HashMap<String, Value>,
    requests: VecDeque<(String, String, Value)>,
    notifications: Vec<(String, Value)>,
    /// The client's requests in progress, by id: what they are.
    sent: HashMap<String, String>,
    /// Recorded to present ids of the server's questions.
    asked: HashMap<String, String>,
    /// Recorded to present texts that only the server understands.
    replaced: HashMap<String, String>,
    comparison: &'a mut Comparison,
}

impl Player<'_> {
    async fn play(mut self, entries: &[Entry]) {
        let mut missing = Vec::new();
        for entry in entries {
            let Some(message) = RawObject::parse(entry.message.get().as_bytes()) else { continue };
            let is_alive = match (entry.from, message.kind()) {
                (Side::Client, kind) => {
                    self.send(message, &kind);
                    true
                }
                (Side::Server, Kind::Response { id }) => {
                    self.compare_response(entry.line, &message, &id).await
                }
                (Side::Server, Kind::Request { id, method }) => {
                    self.compare_question(entry.line, &message, &id, &method).await
                }
                (Side::Server, Kind::Notification { method }) => {
                    missing.push((entry.line, method, without_token(params(&message))));
                    true
                }
                (Side::Server, Kind::Other) => true,
            };
            if !is_alive {
                break;
            }
        }
        self.compare_notifications(missing).await;
        let Connection { to_server, from_server, ended } = self.connection;
        drop((to_server, from_server));
        let _ = ended.await;
    }

    fn send(&mut self, mut message: RawObject, kind: &Kind) {
        match kind {
            Kind::Request { id, method } => {
                self.sent.insert(id.clone(), described(method, &params(&message)));
            }
            Kind::Response { id } => match self.asked.remove(id) {
                Some(present) => message.set_json("id", &present),
                // The server did not ask this, which was reported.
                None => return,
            },
            _ => (),
        }
        if let Some(mut params) = message.object("params") {
            for (name, recorded_by) in [("requestState", "requestState"), ("cursor", "nextCursor")]
            {
                let recorded = params.string(name).map(|value| format!("{recorded_by} {value}"));
                if let Some(present) = recorded.and_then(|key| self.replaced.get(&key)) {
                    params.set(name, present);
                }
            }
            message.set("params", &params);
        }
        // A server that is gone is noticed by its output.
        let _ = self.connection.to_server.send(message.into_bytes());
    }

    /// Compares a response; returns whether the connection can go on.
    async fn compare_response(&mut self, line: usize, recorded: &RawObject, id: &str) -> bool {
        let Some(of) = self.sent.remove(id) else { return true };
        while !self.responses.contains_key(id) {
            if let Err(why) = self.receive(self.limit).await {
                self.report(Some(line), &of, why);
                return false;
            }
        }
        let recorded = outcome(recorded);
        let present = self.responses.remove(id).unwrap_or_default();
        for name in OPAQUE {
            let text =
                |response: &Value| Some(response.get("result")?.get(name)?.as_str()?.to_owned());
            if let (Some(recorded), Some(present)) = (text(&recorded), text(&present)) {
                self.replaced.insert(format!("{name} {recorded}"), present);
            }
        }
        self.compare_values(line, &of, &recorded, &present);
        true
    }

    async fn compare_question(
        &mut self,
        line: usize,
        recorded: &RawObject,
        id: &str,
        method: &str,
    ) -> bool {
        let present = loop {
            if let Some(index) = self.requests.iter().position(|request| request.1 == method) {
                break self.requests.remove(index);
            }
            if let Err(why) = self.receive(self.limit).await {
                self.report(Some(line), method, why);
                return false;
            }
        };
        let Some((present_id, _, present)) = present else { return true };
        self.asked.insert(id.to_owned(), present_id);
        let recorded = json!({ "params": without_token(params(recorded)) });
        self.compare_values(line, method, &recorded, &json!({ "params": present }));
        true
    }

    /// Compares notifications, whose order among other messages is not fixed.
    async fn compare_notifications(&mut self, recorded: Vec<(usize, String, Value)>) {
        let mut missing = recorded;
        self.comparison.compared += missing.len();
        loop {
            missing.retain(|(_, method, params)| {
                let found = self.notifications.iter().position(|notification| {
                    notification.0 == *method && differences("", params, &notification.1).is_empty()
                });
                if let Some(index) = found {
                    self.notifications.remove(index);
                }
                found.is_none()
            });
            if missing.is_empty() || self.receive(LAST).await.is_err() {
                break;
            }
        }
        for (line, method, params) in missing {
            self.report(Some(line), &method, format!("recorded with {params}, missing now"));
        }
        for (method, params) in std::mem::take(&mut self.notifications) {
            self.report(None, &method, format!("not recorded, sent now with {params}"));
        }
        for (_, method, params) in std::mem::take(&mut self.requests) {
            self.report(None, &method, format!("not recorded, asked now with {params}"));
        }
    }

    /// Waits for the next message of the server. Errors with the reason if none comes.
    async fn receive(&mut self, limit: Duration) -> Result<(), String> {
        let frame = match timeout(limit, self.connection.from_server.recv()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err("the server has ended".into()),
            Err(_) => return Err(format!("no answer within {} s", limit.as_secs_f64())),
        };
        let Some(message) = RawObject::parse(&frame) else {
            let text = String::from_utf8_lossy(&frame[..frame.len().min(200)]).into_owned();
            self.report(
                None,
                "standard output",
                format!("what the server wrote is not a message: {text}"),
            );
            return Ok(());
        };
        match message.kind() {
            Kind::Response { id } => {
                self.responses.insert(id, outcome(&message));
            }
            Kind::Request { id, method } if method == "ping" => {
                let pong = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}");
                let _ = self.connection.to_server.send(pong.into_bytes());
            }
            Kind::Request { id, method } if self.requests.len() > 100 => {
                let refusal = error(&id, code::METHOD_NOT_FOUND, "this was not recorded");
                let _ = self.connection.to_server.send(refusal);
                self.report(None, &method, "not recorded, asked now".into());
            }
            Kind::Request { id, method } => {
                self.requests.push_back((id, method, without_token(params(&message))));
            }
            Kind::Notification { method } => {
                self.notifications.push((method, without_token(params(&message))));
            }
            Kind::Other => (),
        }
        Ok(())
    }

    fn compare_values(&mut self, line: usize, of: &str, recorded: &Value, present: &Value) {
        self.comparison.compared += 1;
        // The root has no name.
        for difference in differences("", recorded, present) {
            self.report(Some(line), of, difference.trim_start_matches('.').to_owned());
        }
    }

    fn report(&mut self, line: Option<usize>, of: &str, difference: String) {
        self.comparison.differences.push(Difference { line, of: of.to_owned(), text: difference });
    }
}

/// Returns the result or the error of a response.
fn outcome(response: &RawObject) -> Value {
    let mut outcome = serde_json::Map::new();
    for name in ["result", "error"] {
        let value = response.get(name).and_then(|member| serde_json::from_str(member.get()).ok());
        outcome.extend(value.map(|value: Value| (name.to_owned(), value)));
    }
    Value::Object(outcome)
}

/// Removes the progress token, which each session chooses.
fn without_token(mut params: Value) -> Value {
    if let Value::Object(params) = &mut params {
        params.shift_remove("progressToken");
    }
    params
}

/// Returns the method of a request with the name of the tool, prompt or resource.
fn described(method: &str, params: &Value) -> String {
    let name = ["name", "uri"].iter().find_map(|key| params.get(key)?.as_str());
    name.map_or_else(|| method.to_owned(), |name| format!("{method} {name}"))
}
