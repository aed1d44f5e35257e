//! The bytes between the doctor and a server: JSON-RPC texts over standard streams and over HTTP, right or wrong.

pub mod http;
pub mod sse;
pub mod stdio;

use gudgeon::client::{ClientBuilder, Target};
use serde_json::Value;

use tokio::time::Instant;

use self::{
    http::{Address, Head},
    sse::{NotSse, SseWire},
    stdio::ProcessWire,
};
use crate::failure::{Failure, FailureKind};

/// A server that can be connected to many times.
#[derive(Clone, Debug)]
pub enum Server {
    Command(gudgeon::transport::Command),
    /// Streamable HTTP.
    Address(Address),
    /// HTTP+SSE of 2024-11-05.
    Sse(Address),
}

impl Server {
    /// Returns the server that a client would connect to.
    pub fn from_builder(builder: &ClientBuilder) -> Result<Self, Failure> {
        let unsupported = |target: &str| {
            let hint = "give an http or https URL, or a command after `--`";
            Err(Failure::usage(format!("doctor can't examine {target}")).with_hint(hint))
        };
        match builder.target() {
            (Target::Command(command), _) => Ok(Self::Command(command.clone().quiet())),
            (Target::Url(url), headers) => match Address::new(url, headers) {
                Some(address) => Ok(Self::Address(address)),
                None => unsupported(&format!("{url}")),
            },
            _ => unsupported("this target"),
        }
    }

    /// Returns whether the server speaks Streamable HTTP.
    pub fn is_http(&self) -> bool {
        matches!(self, Self::Address(_))
    }

    pub fn is_stdio(&self) -> bool {
        matches!(self, Self::Command(_))
    }

    /// Starts the server, or opens its stream. Over Streamable HTTP nothing is sent.
    pub async fn connect(&self, until: Instant) -> Result<SessionTransport, Failure> {
        Ok(match self {
            Self::Command(command) => {
                SessionTransport::Process(Box::new(ProcessWire::start(command)?))
            }
            Self::Address(address) => SessionTransport::Address(address.clone()),
            Self::Sse(address) => match SseWire::open(address, until).await {
                Ok(wire) => SessionTransport::Sse(Box::new(wire)),
                Err(NotSse::NoStream(why) | NotSse::NoEndpoint(why)) => {
                    let message =
                        format!("the server did not open another stream of events: {why}");
                    return Err(Failure::new(FailureKind::Connect, message));
                }
            },
        })
    }
}

/// A string that the server sent, and its value if it is JSON.
#[derive(Clone, Debug)]
pub struct Message {
    pub raw: String,
    pub value: Value,
}

impl Message {
    pub fn new(raw: String) -> Self {
        let value = serde_json::from_str(&raw).unwrap_or_default();
        Self { raw, value }
    }

    /// Returns the method of a request or notification.
    pub fn method(&self) -> Option<&str> {
        self.value.get("method")?.as_str()
    }

    pub fn is_response(&self) -> bool {
        self.value.get("result").is_some() || self.value.get("error").is_some()
    }

    /// Returns whether this is the response to a request.
    pub fn answers(&self, id: &Value) -> bool {
        self.is_response() && self.value.get("id") == Some(id)
    }
}

/// The end of an exchange.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum End {
    /// The expected response came.
    Answered,
    /// No response within the time limit, or a later request was answered before.
    Silent,
    /// The server closed the connection.
    Closed,
    /// The connection failed.
    Failed(String),
}

impl End {
    /// Describes the end for a report.
    pub fn reason(&self) -> String {
        match self {
            Self::Answered => "nothing".to_owned(),
            Self::Silent => "no response".to_owned(),
            Self::Closed => "the server closed the connection".to_owned(),
            Self::Failed(reason) => super::report::shown(reason),
        }
    }
}

/// The messages that the server sent after a message to it.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub messages: Vec<Message>,
    pub end: End,
    /// Over HTTP, the head of the response.
    pub http: Option<Head>,
}

impl Exchange {
    /// Returns the response to a request.
    pub fn response(&self, id: &Value) -> Option<&Message> {
        self.messages.iter().find(|message| message.answers(id))
    }

    /// Returns the first response, whatever its id.
    pub fn any_response(&self) -> Option<&Message> {
        self.messages.iter().find(|message| message.is_response())
    }

    /// Describes what came for a report.
    pub fn observed(&self) -> String {
        let status = self.http.as_ref().map(|head| format!("HTTP {}", head.status));
        let text = match (self.messages.iter().rfind(|message| message.is_response()), &self.http) {
            (Some(response), _) => Some(super::report::shown(&response.raw)),
            (None, Some(head)) if !head.body.is_empty() => Some(super::report::shown(&head.body)),
            _ => None,
        };
        let parts: Vec<_> = match (status, text) {
            (Some(status), text) => [Some(status), text].into_iter().flatten().collect(),
            (None, Some(text)) => vec![text],
            (None, None) => vec![self.end.reason()],
        };
        parts.join(" ")
    }
}

/// An open connection, or an address at which each text is a request of its own.
#[derive(Debug)]
pub enum SessionTransport {
    Process(Box<ProcessWire>),
    Sse(Box<SseWire>),
    Address(Address),
}

impl SessionTransport {
    /// Sends a message on an open connection. Over HTTP+SSE, returns the response to the POST if its status is an error.
    pub async fn send(&mut self, text: &str) -> Result<Option<Head>, String> {
        match self {
            Self::Process(process) => process.send(text).await.map(|()| None),
            Self::Sse(stream) => stream.send(text, &[]).await,
            Self::Address(_) => Ok(None),
        }
    }

    /// Returns the next message of an open connection until a time: `Ok(None)` after it, and `Err` once the connection is
    /// closed.
    pub async fn next(&mut self, until: Instant) -> Result<Option<Message>, ()> {
        match self {
            Self::Process(process) => process.next(until).await,
            Self::Sse(stream) => stream.next(until).await,
            Self::Address(_) => Err(()),
        }
    }
}
