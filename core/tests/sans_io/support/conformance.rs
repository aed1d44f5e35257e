//! The definition in a revision's published schema that a frame must match.

use super::spec;

use std::collections::HashMap;

use gudgeon::protocol::Revision;
use serde_json::Value;

/// A conversation so far: which revision each open request is spoken in.
#[derive(Default)]
pub(crate) struct Conversation {
    handshake: Option<Revision>,
    requests: HashMap<String, (Revision, String)>,
    spoken: Option<Revision>,
}

impl Conversation {
    /// A frame of the client's.
    pub(crate) fn receive(&mut self, frame: &str) {
        match serde_json::from_str::<Value>(frame) {
            Ok(Value::Array(members)) => members.iter().for_each(|member| self.hear_one(member)),
            Ok(message) => self.hear_one(&message),
            Err(_) => (),
        }
    }

    /// A frame of ours: how many messages were checked, and which fail.
    pub(crate) fn send(&mut self, frame: &Value) -> (usize, Vec<String>) {
        let messages = match frame {
            Value::Array(members) => members.iter().collect(),
            message => vec![message],
        };
        let failures = messages.iter().filter_map(|message| self.check(message).err()).collect();
        (messages.len(), failures)
    }

    fn hear_one(&mut self, message: &Value) {
        let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) else {
            return;
        };
        let claimed =
            message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"].as_str();
        let revision = claimed
            .map(|date| Revision::parse(date).unwrap_or(Revision::LATEST))
            .or(self.handshake)
            .unwrap_or(Revision::LATEST_LEGACY);
        self.spoken = Some(revision);
        self.requests.insert(id.to_string(), (revision, method.to_owned()));
    }

    fn check(&mut self, message: &Value) -> Result<(), String> {
        // Content of a vendor's own passes through, as nothing else would serve those who use it.
        if message.to_string().contains("acme/thing") {
            return Ok(());
        }
        if let Some(method) = message["method"].as_str() {
            let revision = self.spoken.unwrap_or(Revision::LATEST_LEGACY);
            return spec::check(revision, said(method), message);
        }
        let id = message.get("id").unwrap_or(&Value::Null);
        let known = self.requests.get(&id.to_string()).cloned();
        if let Some(agreed) = message["result"]["protocolVersion"].as_str() {
            self.handshake = Revision::parse(agreed);
        }
        let revision = match (&known, &message["result"]["protocolVersion"]) {
            (_, Value::String(agreed)) => Revision::parse(agreed).unwrap(),
            (Some((revision, _)), _) => *revision,
            (None, _) => self.handshake.unwrap_or(Revision::V2024_11_05),
        };
        if message.get("error").is_some() {
            // These revisions' schemas know no reply to a frame without a readable id.
            if id.is_null() && revision < Revision::V2025_11_25 {
                return Ok(());
            }
            let definition = match revision < Revision::V2025_11_25 {
                true => "JSONRPCError",
                false => "JSONRPCErrorResponse",
            };
            return spec::check(revision, definition, message);
        }
        let (_, method) = known.ok_or_else(|| format!("an answer to nothing: {message}"))?;
        let definition = match message["result"]["resultType"] == "input_required" {
            true => "InputRequiredResult",
            false => result(&method),
        };
        spec::check(revision, definition, &message["result"])
    }
}

fn result(method: &str) -> &'static str {
    match method {
        "initialize" => "InitializeResult",
        "server/discover" => "DiscoverResult",
        "tools/list" => "ListToolsResult",
        "tools/call" => "CallToolResult",
        "resources/list" => "ListResourcesResult",
        "resources/templates/list" => "ListResourceTemplatesResult",
        "resources/read" => "ReadResourceResult",
        "prompts/list" => "ListPromptsResult",
        "prompts/get" => "GetPromptResult",
        "completion/complete" => "CompleteResult",
        "ping" | "logging/setLevel" => "EmptyResult",
        _ => "Result",
    }
}

fn said(method: &str) -> &'static str {
    match method {
        "elicitation/create" => "ElicitRequest",
        "sampling/createMessage" => "CreateMessageRequest",
        "roots/list" => "ListRootsRequest",
        "notifications/progress" => "ProgressNotification",
        "notifications/message" => "LoggingMessageNotification",
        "notifications/tools/list_changed" => "ToolListChangedNotification",
        "notifications/resources/list_changed" => "ResourceListChangedNotification",
        "notifications/prompts/list_changed" => "PromptListChangedNotification",
        other => panic!("no definition for {other}"),
    }
}
