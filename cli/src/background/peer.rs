//! A command that uses a named connection. To it the connection is an MCP server that speaks the revision of the real one;
//! requests and results pass through as they are.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use gudgeon::{
    Client, Error, LoggingLevel, Revision,
    client::{Change, ListKind, Operation, ServerIdentity},
    error::ErrorKind,
    protocol::{ErrorObject, Raw, SubscriptionFilter, code},
};
use serde::Deserialize;
use serde_json::{Map, Value, json, value::RawValue};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::{Notify, OnceCell, mpsc, oneshot},
    task::JoinSet,
};

use super::{
    connection::{Connection, DEFAULT_LEVEL},
    message::{
        Lines, Message, error_object, error_of, lock, method_not_found, notification, raw, request,
        response,
    },
    notice,
};
use crate::failure::Failure;

/// The maximum number of messages that wait for the command to read them. Notifications beyond are dropped.
const QUEUE: usize = 1024;
/// The maximum number of requests in progress.
const MAX_REQUESTS: usize = 1024;
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Members of `_meta` that belong to one connection.
const OF_CONNECTION: [&str; 4] = [
    "progressToken",
    "io.modelcontextprotocol/protocolVersion",
    "io.modelcontextprotocol/clientInfo",
    "io.modelcontextprotocol/clientCapabilities",
];

pub struct Peer {
    lines: mpsc::Sender<String>,
    /// Questions to the command that are not answered, by id.
    questions: Mutex<HashMap<u64, oneshot::Sender<Result<Raw, Error>>>>,
    next: AtomicU64,
    revision: OnceLock<Revision>,
    /// The level from which the command shows log messages; `None`: it shows none.
    level: Mutex<Option<LoggingLevel>>,
    ended: Notify,
}

/// The requests of a command.
struct Requests {
    connection: Arc<Connection>,
    peer: Arc<Peer>,
    /// The client, or the error of the attempt to connect. A command that could not connect does not try again.
    client: OnceCell<Result<Client, ErrorObject>>,
    was_discovered: AtomicBool,
}

/// The members of params that are read here.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Params {
    name: String,
    arguments: Option<Raw>,
    input_responses: Option<Raw>,
    request_state: Option<String>,
    level: Option<LoggingLevel>,
    request_id: Option<Raw>,
    notifications: SubscriptionFilter,
    protocol_version: Option<String>,
}

/// Serves a command until it closes its stream.
pub async fn serve<R, W>(connection: Arc<Connection>, mut lines: Lines<R>, mut writer: W)
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin + Send + 'static,
{
    let (sender, mut queue) = mpsc::channel::<String>(QUEUE);
    let peer = Peer::new(sender);
    let joined = connection.join(Arc::clone(&peer));
    let writing = tokio::spawn(async move {
        while let Some(mut line) = queue.recv().await {
            line.push('\n');
            if writer.write_all(line.as_bytes()).await.is_err() || writer.flush().await.is_err() {
                return;
            }
        }
    });
    let requests = Arc::new(Requests {
        connection,
        peer: Arc::clone(&peer),
        client: OnceCell::new(),
        was_discovered: AtomicBool::new(false),
    });
    let mut running = JoinSet::new();
    let mut by_id = HashMap::new();
    loop {
        let message = tokio::select! {
            message = lines.next() => message,
            () = peer.ended.notified() => break,
        };
        let Ok(Some(message)) = message else { break };
        while running.try_join_next().is_some() {}
        by_id.retain(|_: &String, task: &mut tokio::task::AbortHandle| !task.is_finished());
        let Message { id, method, params, result, error } = message;
        match (id, method) {
            (Some(id), Some(method)) if running.len() < MAX_REQUESTS => {
                let (key, requests) = (id.get().to_owned(), Arc::clone(&requests));
                let task = running.spawn(async move {
                    let outcome = requests.answer(&id, &method, params).await;
                    let outcome = outcome.as_deref();
                    let _ = requests.peer.lines.send(response(&id, outcome)).await;
                });
                by_id.insert(key, task);
            }
            (Some(id), Some(_)) => {
                let busy = error_of(&Failure::usage("too many requests at once"));
                peer.notify(response(&id, Err(&busy)));
            }
            (Some(id), None) => peer.answered(&id, result, error),
            (None, Some(method)) if method == "notifications/cancelled" => {
                let cancelled = params.map(|params| read(&params)).unwrap_or_default().request_id;
                if let Some(task) = cancelled.and_then(|id| by_id.remove(id.get())) {
                    task.abort();
                }
            }
            (None, Some(method)) => requests.notified(&method, params),
            (None, None) => (),
        }
    }
    running.shutdown().await;
    drop(joined);
    // Messages that were queued before are still written: the other references to the peer are gone.
    drop((requests, peer));
    let _ = tokio::time::timeout(std::time::Duration::from_secs(1), writing).await;
}

impl Peer {
    fn new(lines: mpsc::Sender<String>) -> Arc<Self> {
        Arc::new(Self {
            lines,
            questions: Mutex::default(),
            next: AtomicU64::new(0),
            revision: OnceLock::new(),
            level: Mutex::default(),
            ended: Notify::new(),
        })
    }

    #[cfg(test)]
    pub fn test() -> Arc<Self> {
        Self::new(mpsc::channel(1).0)
    }

    /// Sends a notification, unless the command does not read what it is sent.
    pub fn notify(&self, line: String) {
        let _ = self.lines.try_send(line);
    }

    /// Returns the level from which the command shows log messages.
    pub fn level(&self) -> Option<LoggingLevel> {
        *lock(&self.level)
    }

    /// Returns whether the command shows log messages of a level.
    pub fn shows(&self, level: LoggingLevel) -> bool {
        self.level().is_some_and(|lowest| lowest <= level)
    }

    /// Ends the stream of the command.
    pub fn end(&self) {
        self.ended.notify_one();
    }

    /// Ends the stream of a command that speaks another revision.
    pub fn end_unless(&self, revision: Revision) {
        if self.revision.get().is_some_and(|known| *known != revision) {
            self.end();
        }
    }

    /// Asks the command a question of the server and waits for the answer.
    pub async fn ask(&self, method: &str, params: &RawValue) -> Result<Raw, Error> {
        /// Tells the command that a question was cancelled.
        struct Asked<'a>(&'a Peer, u64);
        impl Drop for Asked<'_> {
            fn drop(&mut self) {
                if lock(&self.0.questions).remove(&self.1).is_some() {
                    let params = raw(&json!({ "requestId": self.1 }));
                    self.0.notify(notification("notifications/cancelled", &params));
                }
            }
        }
        let gone = || Error::new(ErrorKind::Cancelled, "the command that called has ended");
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, answer) = oneshot::channel();
        lock(&self.questions).insert(id, sender);
        let _asked = Asked(self, id);
        self.lines.send(request(id, method, &params)).await.map_err(|_| gone())?;
        tokio::select! {
            answer = answer => answer.map_err(|_| gone())?,
            () = self.lines.closed() => Err(gone()),
        }
    }

    fn answered(&self, id: &RawValue, result: Option<Raw>, error: Option<ErrorObject>) {
        let id = id.get().parse::<u64>().ok();
        let Some(waiting) = id.and_then(|id| lock(&self.questions).remove(&id)) else { return };
        let outcome = match (result, error) {
            (Some(result), None) => Ok(result),
            (_, Some(ErrorObject { code, message, data })) => {
                let error = Error::new(ErrorKind::Protocol, message);
                Err(error.with(|details| (details.code, details.data) = (Some(code), data)))
            }
            (None, None) => Err(Error::new(ErrorKind::Protocol, "the answer has no result")),
        };
        // The question may have been cancelled.
        let _ = waiting.send(outcome);
    }
}

impl Requests {
    async fn client(&self) -> Result<&Client, ErrorObject> {
        let connect = || async {
            let client = self.connection.client().await.map_err(|error| error_of(&error))?;
            let server = client.server();
            let _ = self.peer.revision.set(server.revision);
            if !server.spoken().is_stateless {
                *lock(&self.peer.level) = Some(DEFAULT_LEVEL);
                // Another command may have raised the level.
                let _ = self.connection.update_level(&client, false).await;
            }
            Ok(client)
        };
        self.client.get_or_init(connect).await.as_ref().map_err(Clone::clone)
    }

    async fn answer(
        self: &Arc<Self>,
        id: &RawValue,
        method: &str,
        params: Option<Raw>,
    ) -> Result<Raw, ErrorObject> {
        let client = self.client().await?;
        let server = client.server();
        let is_modern = server.spoken().is_stateless;
        let (params, meta) = split_meta(params)?;
        let read = params.as_deref().map(read).unwrap_or_default();
        if is_modern {
            *lock(&self.peer.level) = meta.log_level;
        }
        let client = client.with_options(|options| {
            options.raise_on_error = false;
            options.meta = meta.others;
            if let Some(token) = meta.progress_token {
                let peer = Arc::clone(&self.peer);
                options.on_progress =
                    Some(Arc::new(move |step| peer.notify(notice::progress(&step, &token))));
            }
        });
        let operation = match method {
            "initialize" if is_modern => return Err(other_revision(&server, &read)),
            "initialize" => return Ok(raw(&initialize_result(&server))),
            "server/discover" if !is_modern => return Err(method_not_found(method)),
            "server/discover" => {
                if self.was_discovered.swap(true, Ordering::Relaxed) {
                    // A ping measures the time of a round trip, or shows that the server is there.
                    let pinged = client.call(Operation::Ping, client.options()).await;
                    pinged.map_err(error_object)?;
                }
                return Ok(raw(&discover_result(&server)));
            }
            "subscriptions/listen" if is_modern => {
                return self.listen(id, &client, read.notifications).await;
            }
            "ping" => Operation::Ping,
            "logging/setLevel" if read.level.is_some() => {
                *lock(&self.peer.level) = read.level;
                let set = self.connection.update_level(&client, true).await;
                return set.map(|()| raw(&json!({}))).map_err(error_object);
            }
            // Arguments are repeated in headers, for which the client has to know the tool.
            "tools/call" => Operation::CallToolRound {
                name: read.name,
                arguments: read.arguments,
                answers: read.input_responses,
                state: read.request_state,
            },
            method => Operation::Request { method: method.to_owned(), params },
        };
        let may_ask = matches!(method, "tools/call" | "prompts/get" | "resources/read");
        let _running = may_ask.then(|| self.connection.questions.begin(&self.peer));
        let options = client.options();
        client.call(operation, options).await.map(|reply| reply.result).map_err(error_object)
    }

    /// Passes changes on until the command cancels the request.
    async fn listen(
        &self,
        id: &RawValue,
        client: &Client,
        filter: SubscriptionFilter,
    ) -> Result<Raw, ErrorObject> {
        let mut changes = client.subscribe_to(&filter).await.map_err(error_object)?;
        let meta = json!({ SUBSCRIPTION_ID: id });
        let acknowledged = json!({ "_meta": meta, "notifications": filter });
        let method = "notifications/subscriptions/acknowledged";
        self.peer.notify(notification(method, &raw(&acknowledged)));
        while let Some(change) = changes.next().await {
            let (method, params) = match change.map_err(error_object)? {
                Change::List(list) => {
                    let method = match list {
                        ListKind::Tools => "notifications/tools/list_changed",
                        ListKind::Resources => "notifications/resources/list_changed",
                        ListKind::Prompts => "notifications/prompts/list_changed",
                    };
                    (method, json!({ "_meta": meta }))
                }
                Change::Updated(uri) => {
                    ("notifications/resources/updated", json!({ "_meta": meta, "uri": uri }))
                }
            };
            self.peer.notify(notification(method, &raw(&params)));
        }
        Ok(raw(&json!({ "resultType": "complete", "_meta": meta })))
    }

    fn notified(&self, method: &str, params: Option<Raw>) {
        if method == "notifications/initialized" {
            return;
        }
        if let Some(Ok(client)) = self.client.get() {
            // A notification has no answer that could tell of a failure.
            let _ = client.notify(method, params.unwrap_or_else(|| raw(&json!({}))));
        }
    }
}

/// `_meta` of a request.
#[derive(Default)]
struct Meta {
    progress_token: Option<Value>,
    log_level: Option<LoggingLevel>,
    /// The members that the server gets.
    others: Option<Raw>,
}

/// Takes `_meta` out of params.
fn split_meta(params: Option<Raw>) -> Result<(Option<Raw>, Meta), ErrorObject> {
    let Some(params) = params else { return Ok((None, Meta::default())) };
    let invalid = |error: serde_json::Error| ErrorObject {
        code: code::INVALID_PARAMS,
        message: error.to_string(),
        data: None,
    };
    // Other members stay as they are, such as numbers of any size.
    let mut members: Vec<(String, Raw)> =
        serde_json::from_str::<Members>(params.get()).map_err(invalid)?.0;
    let Some(at) = members.iter().position(|(name, _)| name == "_meta") else {
        return Ok((Some(params), Meta::default()));
    };
    let (_, meta) = members.remove(at);
    let mut meta: Map<String, Value> = serde_json::from_str(meta.get()).map_err(invalid)?;
    let progress_token = meta.get("progressToken").cloned();
    let log_level = meta.get(LOG_LEVEL).and_then(|level| LoggingLevel::deserialize(level).ok());
    meta.retain(|name, _| !OF_CONNECTION.contains(&name.as_str()));
    let others = (!meta.is_empty()).then(|| raw(&meta));
    Ok((Some(raw(&Members(members))), Meta { progress_token, log_level, others }))
}

/// The members of an object with their values as raw JSON.
struct Members(Vec<(String, Raw)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Members;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(
                self,
                mut map: A,
            ) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Visitor)
    }
}

impl serde::Serialize for Members {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Reads the members that are known here; invalid params are the server's to reject.
fn read(params: &RawValue) -> Params {
    serde_json::from_str(params.get()).unwrap_or_default()
}

fn initialize_result(server: &ServerIdentity) -> Value {
    let mut result = json!({
        "protocolVersion": server.revision.to_string(),
        "capabilities": server.capabilities,
        "serverInfo": server.info,
    });
    if let Some(instructions) = &server.instructions {
        result["instructions"] = instructions.as_str().into();
    }
    result
}

fn discover_result(server: &ServerIdentity) -> Value {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [server.revision.to_string()],
        "capabilities": server.capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": { "io.modelcontextprotocol/serverInfo": server.info },
    });
    if let Some(instructions) = &server.instructions {
        result["instructions"] = instructions.as_str().into();
    }
    result
}

fn other_revision(server: &ServerIdentity, params: &Params) -> ErrorObject {
    let requested = params.protocol_version.as_deref().unwrap_or_default();
    let data = json!({ "supported": [server.revision.to_string()], "requested": requested });
    ErrorObject {
        code: code::UNSUPPORTED_PROTOCOL_VERSION,
        message: format!("this connection speaks {}", server.revision),
        data: Some(raw(&data)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_meta_of_the_connection_is_removed() {
        let params = r#"{"big":1e400,"_meta":{"progressToken":"a","own":1,"io.modelcontextprotocol/protocolVersion":"x"}}"#;
        let params = RawValue::from_string(params.to_owned()).expect("JSON");
        let (rest, meta) = split_meta(Some(params)).expect("an object");
        assert_eq!(rest.expect("params").get(), r#"{"big":1e400}"#);
        assert_eq!(meta.progress_token, Some("a".into()));
        assert_eq!(meta.others.expect("others").get(), r#"{"own":1}"#);
        let list = RawValue::from_string("[]".to_owned()).expect("JSON");
        assert!(split_meta(Some(list)).is_err());
    }
}
