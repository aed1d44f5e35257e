//! One client's session with a server that is started again.

use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

use gudgeon::protocol::code;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use super::{Changes, Start};
use crate::{
    frames::{
        Connection, Ended,
        message::{Kind, RawObject, error, notification},
    },
    output,
};

const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The lists whose changes are announced after a start, and the name of each in `subscriptions/listen`.
const LISTS: [(&str, &str); 3] = [
    ("tools", "toolsListChanged"),
    ("resources", "resourcesListChanged"),
    ("prompts", "promptsListChanged"),
];

/// The session of a client. The client's handshake, subscriptions and settings are kept, and sent again to each new process.
pub(super) struct Session {
    name: String,
    start: Start,
    to_host: mpsc::Sender<Vec<u8>>,
    server: Option<Connection>,
    /// True once the process has sent a message.
    is_ready: bool,
    /// True while the process ends so that another one can take its place.
    is_restarting: bool,
    started: Instant,
    /// The reason why the server can't be started, until its files change.
    broken: Option<String>,
    /// The client's requests without a response, by id.
    pending: HashMap<String, RawObject>,
    /// The client's handshake, after the server accepted it.
    initialize: Option<RawObject>,
    initialized: Option<RawObject>,
    /// The lists that the server said it has.
    lists: HashSet<&'static str>,
    /// The log level and the resources that the client subscribed to: requests by method and URI.
    settings: Vec<(String, RawObject)>,
    /// The ids of repeated requests, whose responses are not for the client.
    repeated: HashSet<String>,
    /// The ids of subscriptions whose acknowledgement the client has had.
    resumed: HashSet<String>,
    /// The server's questions: their ids as the client knows them, and as the process does.
    questions: HashMap<String, String>,
    next: u64,
}

impl Session {
    pub(super) fn new(name: String, start: Start, to_host: mpsc::Sender<Vec<u8>>) -> Self {
        Self {
            name,
            start,
            to_host,
            server: None,
            is_ready: false,
            is_restarting: false,
            started: Instant::now(),
            broken: None,
            pending: HashMap::new(),
            initialize: None,
            initialized: None,
            lists: HashSet::new(),
            settings: Vec::new(),
            repeated: HashSet::new(),
            resumed: HashSet::new(),
            questions: HashMap::new(),
            next: 0,
        }
    }

    /// Passes messages on until the client is gone.
    pub(super) async fn run(
        mut self,
        mut from_host: mpsc::UnboundedReceiver<Vec<u8>>,
        mut changes: watch::Receiver<Changes>,
    ) {
        self.start_server();
        loop {
            let from_server = async {
                match &mut self.server {
                    Some(server) => server.from_server.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                frame = from_host.recv() => match frame {
                    Some(frame) => self.on_host(frame).await,
                    None => break,
                },
                frame = from_server => match frame {
                    Some(frame) => self.on_server(frame).await,
                    None => self.on_end().await,
                },
                Ok(()) = changes.changed() => {
                    let files = changes.borrow_and_update().shown();
                    output::note(format_args!("{files} changed: {} starts again", self.name));
                    self.restart().await;
                }
            }
        }
        self.stop_server().await;
    }

    fn start_server(&mut self) {
        self.is_ready = false;
        self.started = Instant::now();
        match (self.start)().and_then(|process| process.start()) {
            Ok(server) => {
                self.server = Some(server);
                self.broken = None;
                self.repeat_handshake();
            }
            Err(failure) => {
                output::note(&failure);
                self.broken = Some(failure.to_string());
            }
        }
    }

    /// Ends the process; passes on what it sends until then.
    async fn stop_server(&mut self) {
        let Some(Connection { to_server, mut from_server, ended }) = self.server.take() else {
            return;
        };
        drop(to_server);
        while let Some(frame) = from_server.recv().await {
            self.on_server(frame).await;
        }
        let _ = ended.await;
    }

    async fn restart(&mut self) {
        self.is_restarting = true;
        self.stop_server().await;
        self.is_restarting = false;
        let why = format!("{} was changed and started again; call again", self.name);
        self.fail_pending(&why).await;
        self.start_server();
        if let Some(why) = self.broken.clone() {
            self.fail_pending(&why).await;
        }
    }

    /// Sends a new process the client's handshake, subscriptions and settings.
    fn repeat_handshake(&mut self) {
        if let Some(initialize) = self.initialize.clone() {
            self.repeat(initialize);
        }
        let subscriptions: Vec<_> = self
            .pending
            .iter()
            .filter(|entry| is_subscription(entry.1))
            .map(|(id, request)| (id.clone(), request.clone()))
            .collect();
        for (id, subscription) in subscriptions {
            self.resumed.insert(id);
            self.send(subscription.into_bytes());
        }
    }

    /// Sends a request of the client once more, with an id of its own.
    fn repeat(&mut self, mut request: RawObject) {
        let id = self.next_id();
        request.set_json("id", &id);
        self.repeated.insert(id);
        self.send(request.into_bytes());
    }

    fn next_id(&mut self) -> String {
        self.next += 1;
        format!("\"gudgeon-dev-{}\"", self.next)
    }

    fn send(&self, frame: Vec<u8>) {
        if let Some(server) = &self.server {
            // A process that is gone is noticed by its output.
            let _ = server.to_server.send(frame);
        }
    }

    async fn tell_host(&self, frame: Vec<u8>) {
        // A client that is gone is noticed by its input.
        let _ = self.to_host.send(frame).await;
    }

    async fn on_host(&mut self, frame: Vec<u8>) {
        let Some(mut message) = RawObject::parse(&frame) else { return self.send(frame) };
        match message.kind() {
            Kind::Request { id, method } => {
                // A server that ended by itself is started again when it is needed.
                if self.server.is_none() && self.broken.is_none() {
                    self.start_server();
                }
                if let Some(why) = &self.broken {
                    let response = error(&id, code::INTERNAL_ERROR, why);
                    return self.tell_host(response).await;
                }
                self.keep_setting(&method, &message);
                self.pending.insert(id, message);
                self.send(frame);
            }
            Kind::Notification { method } => {
                if method == "notifications/initialized" {
                    self.initialized = Some(message);
                } else if method == "notifications/cancelled"
                    && let Some(id) =
                        message.object("params").as_ref().and_then(|params| params.get("requestId"))
                {
                    self.pending.remove(id.get());
                }
                self.send(frame);
            }
            Kind::Response { id } => {
                // An answer for a process that has ended is dropped.
                if let Some(id) = self.questions.remove(&id) {
                    message.set_json("id", &id);
                    self.send(message.into_bytes());
                }
            }
            Kind::Other => self.send(frame),
        }
    }

    /// Keeps a request that changes the state of the session.
    fn keep_setting(&mut self, method: &str, message: &RawObject) {
        let uri =
            || message.object("params").and_then(|params| params.string("uri")).unwrap_or_default();
        let (key, is_kept) = match method {
            "logging/setLevel" => (String::new(), true),
            "resources/subscribe" => (uri(), true),
            "resources/unsubscribe" => (uri(), false),
            _ => return,
        };
        self.settings.retain(|setting| setting.0 != key);
        if is_kept {
            self.settings.push((key, message.clone()));
        }
    }

    async fn on_server(&mut self, frame: Vec<u8>) {
        let Some(mut message) = RawObject::parse(&frame) else {
            return output::stray(&self.name, &frame);
        };
        self.is_ready = true;
        match message.kind() {
            Kind::Response { id } if self.repeated.remove(&id) => {
                // The first response of a new process is that to `initialize`.
                if let Some(initialized) = self.initialized.clone()
                    && message
                        .object("result")
                        .is_some_and(|result| result.get("protocolVersion").is_some())
                {
                    self.send(initialized.into_bytes());
                    for (_, setting) in self.settings.clone() {
                        self.repeat(setting);
                    }
                    self.announce_in_session(&message).await;
                }
            }
            // The process ends its subscriptions; they go on with the next one.
            Kind::Response { id }
                if self.is_restarting && self.pending.get(&id).is_some_and(is_subscription) => {}
            Kind::Response { id } => {
                let request = self.pending.remove(&id);
                let method = request.as_ref().and_then(|request| request.string("method"));
                let is_handshake =
                    matches!(method.as_deref(), Some("initialize" | "server/discover"));
                if !is_handshake || message.get("result").is_none() {
                    return self.tell_host(frame).await;
                }
                if method.as_deref() == Some("initialize") {
                    self.initialize = request;
                }
                self.note_lists(&message);
                announce_lists(&mut message);
                self.tell_host(message.into_bytes()).await;
            }
            Kind::Request { id, .. } => {
                // The ids of two processes may be the same.
                let ours = self.next_id();
                message.set_json("id", &ours);
                self.questions.insert(ours, id);
                self.tell_host(message.into_bytes()).await;
            }
            Kind::Notification { method } => {
                if method == "notifications/subscriptions/acknowledged"
                    && let Some(id) = message.meta(SUBSCRIPTION_ID)
                    && self.resumed.remove(&id)
                {
                    return self.announce_to(&id).await;
                }
                self.tell_host(frame).await;
            }
            Kind::Other => self.tell_host(frame).await,
        }
    }

    /// Remembers the lists of a server.
    fn note_lists(&mut self, handshake: &RawObject) {
        let capabilities =
            handshake.object("result").and_then(|result| result.object("capabilities"));
        let Some(capabilities) = capabilities else { return };
        self.lists.extend(
            LISTS.iter().map(|list| list.0).filter(|list| capabilities.get(list).is_some()),
        );
    }

    /// Announces all lists as changed, in a session.
    async fn announce_in_session(&mut self, handshake: &RawObject) {
        self.note_lists(handshake);
        self.note_ready();
        for (list, _) in LISTS {
            if self.lists.contains(list) {
                let method = format!("notifications/{list}/list_changed");
                self.tell_host(notification(&method, &Value::Null)).await;
            }
        }
    }

    /// Announces the lists that a subscription asked for as changed.
    async fn announce_to(&self, id: &str) {
        self.note_ready();
        let params = self.pending.get(id).and_then(|request| request.object("params"));
        let wanted = params.and_then(|params| params.object("notifications")).unwrap_or_default();
        for (list, name) in LISTS {
            if wanted.get(name).is_some_and(|value| value.get() == "true") {
                let mut message = RawObject::parse(&notification(
                    &format!("notifications/{list}/list_changed"),
                    &json!({}),
                ))
                .unwrap_or_default();
                message.set_meta(SUBSCRIPTION_ID, id);
                self.tell_host(message.into_bytes()).await;
            }
        }
    }

    fn note_ready(&self) {
        let time = self.started.elapsed().as_millis();
        output::note(format_args!("{} serves again after {time} ms", self.name));
    }

    /// The process has ended by itself.
    async fn on_end(&mut self) {
        let Some(server) = self.server.take() else { return };
        drop(server.to_server);
        let Ended { code, stderr } = server.ended.await.unwrap_or_default();
        let mut why = self.name.clone();
        why.push_str(if self.is_ready { " has ended" } else { " does not start" });
        if let Some(code) = code {
            why = format!("{why}: exit code {code}");
        }
        if self.is_ready {
            output::note(format_args!("{why}; it starts again with the next request"));
        } else {
            output::note(format_args!("{why}; it starts again when its files change"));
        }
        if !stderr.is_empty() {
            why = format!("{why}; the end of its standard error:\n{stderr}");
        }
        self.fail_pending(&why).await;
        if !self.is_ready {
            self.broken = Some(why);
        }
    }

    /// Answers all requests with an error, but for subscriptions, which go on, and withdraws the server's questions.
    async fn fail_pending(&mut self, why: &str) {
        let all = std::mem::take(&mut self.pending);
        let (kept, failed): (HashMap<_, _>, HashMap<_, _>) =
            all.into_iter().partition(|entry| is_subscription(&entry.1));
        self.pending = kept;
        for id in failed.into_keys() {
            self.tell_host(error(&id, code::INTERNAL_ERROR, why)).await;
        }
        for (id, _) in std::mem::take(&mut self.questions) {
            let id: Value = serde_json::from_str(&id).unwrap_or_default();
            let params = json!({ "requestId": id, "reason": why });
            self.tell_host(notification("notifications/cancelled", &params)).await;
        }
        self.repeated.clear();
    }
}

fn is_subscription(request: &RawObject) -> bool {
    request.string("method").is_some_and(|method| method == "subscriptions/listen")
}

/// Declares in a server's handshake that changes of its lists are announced.
fn announce_lists(handshake: &mut RawObject) {
    let Some(mut result) = handshake.object("result") else { return };
    let Some(mut capabilities) = result.object("capabilities") else { return };
    for (list, _) in LISTS {
        if let Some(mut capability) = capabilities.object(list) {
            capability.set("listChanged", &true);
            capabilities.set(list, &capability);
        }
    }
    result.set("capabilities", &capabilities);
    handshake.set("result", &result);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_declares_changes_of_the_lists_that_exist() {
        let text =
            br#"{"id":1,"result":{"capabilities":{"tools":{},"prompts":{"listChanged":false}}}}"#;
        let mut handshake = RawObject::parse(text).unwrap_or_default();
        announce_lists(&mut handshake);
        let changed = String::from_utf8(handshake.into_bytes());
        let expected = r#"{"id":1,"result":{"capabilities":{"tools":{"listChanged":true},"prompts":{"listChanged":true}}}}"#;
        assert_eq!(changed.as_deref(), Ok(expected));
    }
}
