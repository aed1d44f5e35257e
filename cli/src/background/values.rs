//! Values that commands exchange with the background process.

use std::time::Duration;

use gudgeon::{LoggingLevel, protocol::Raw};
use serde::{Deserialize, Serialize};

use crate::{connection::ConnectionArguments, interaction::Interaction};

/// The state of a call that is kept: its result, or the question that it waits for.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    Result(ToolReply),
    Question(QuestionShown),
}

/// The result of a tool.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolReply {
    pub tool: String,
    pub result: Raw,
    /// The structured content without its wrapper.
    pub data: Option<Raw>,
}

/// A question that waits for its answer.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionShown {
    pub id: String,
    pub connection: String,
    pub tool: String,
    /// `elicitation/create` or `sampling/createMessage`.
    pub method: String,
    pub params: Raw,
    pub expires_in_seconds: u64,
}

/// The request to call a tool.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CallParams {
    pub tool: String,
    pub arguments: Option<Raw>,
    pub timeout_milliseconds: Option<u64>,
    pub max_timeout_milliseconds: Option<u64>,
    pub log_level: Option<LoggingLevel>,
    /// True if the user wants neither progress nor log messages.
    pub is_quiet: bool,
}

impl CallParams {
    /// Creates a request with the options of a command.
    pub fn new(
        tool: &str,
        arguments: Option<Raw>,
        connection: &ConnectionArguments,
        interaction: &Interaction,
    ) -> Self {
        let milliseconds =
            |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        Self {
            tool: tool.to_owned(),
            arguments,
            timeout_milliseconds: Some(milliseconds(connection.timeout)),
            max_timeout_milliseconds: connection.max_timeout.map(milliseconds),
            log_level: interaction.log_level(),
            is_quiet: interaction.notices.is_quiet(),
        }
    }
}

/// A connection as it is listed.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionState {
    pub name: String,
    pub target: String,
    /// False if the next command connects first.
    pub is_connected: bool,
    pub server: Option<Server>,
}

/// A server as it names itself.
#[derive(Deserialize, Serialize)]
pub struct Server {
    pub name: String,
    pub version: String,
    pub revision: String,
}
