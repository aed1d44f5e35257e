//! The expectations of a row of a table: the response of the endpoint to one request.

use gudgeon::{
    engine::HandlerEvent,
    http::EndpointInput,
    protocol::{LoggingLevel, json::to_raw},
    session::server::{Log, Progress},
};
use serde_json::Value;

use super::{
    Handler,
    fixture::HandlerMessage,
    request::Request,
    visitor::{Answered, Visitor},
};

impl Visitor {
    /// Sends a request, runs its handler, and returns the response.
    pub(crate) fn ask(&mut self, request: &Request) -> &Answered {
        let id = self.request(request);
        self.run_handlers();
        self.replies.get(&id).unwrap_or_else(|| panic!("no response to {request:?}"))
    }

    /// Returns the result of a request that is served.
    pub(crate) fn serves(&mut self, request: &Request) -> Value {
        let reply = self.ask(request);
        assert_eq!((reply.status, reply.complete), (200, true), "{request:?} {reply:?}");
        let message = match reply.is_stream() {
            true => reply.messages().pop().unwrap_or_default(),
            false => reply.json(),
        };
        assert_eq!(message["id"], request.id(), "{request:?} {message}");
        message.get("result").unwrap_or_else(|| panic!("{request:?} {message}")).clone()
    }

    /// Checks that a request gets this JSON-RPC error with its id, in JSON; returns the error.
    pub(crate) fn refuses(&mut self, request: &Request, status: u16, code: i64) -> Value {
        let reply = self.ask(request);
        let shown = format!("{request:?}\n{reply:?}");
        assert_eq!((reply.status, reply.error()), (status, code), "{shown}");
        assert_eq!((reply.header("content-type"), reply.complete), ("application/json", true));
        let body = reply.json();
        assert_eq!(body.get("id").unwrap_or(&Value::Null), &request.id(), "{shown}");
        assert_ne!(body["error"]["message"], "", "{shown}");
        assert!(!reply.body.contains(".rs:"), "a place in our source: {shown}");
        body["error"].clone()
    }

    /// Checks that a request is refused as HTTP, with a reason that contains these words.
    pub(crate) fn rejects(&mut self, request: &Request, status: u16, words: &str) {
        let reply = self.ask(request);
        let shown = format!("{request:?}\n{reply:?}");
        assert_eq!((reply.status, reply.complete), (status, true), "{shown}");
        assert_eq!(reply.header("content-type"), "application/json", "{shown}");
        assert_eq!(reply.header("mcp-session-id"), "", "{shown}");
        let error = &reply.json()["error"];
        let reason = error.as_str().or(error["message"].as_str()).unwrap_or_default();
        assert!(reason.contains(words), "{shown}");
    }

    /// Checks that a message is accepted, which has no response of its own.
    pub(crate) fn accepts(&mut self, request: &Request) {
        let reply = self.ask(request);
        let seen = (reply.status, &*reply.body, reply.complete);
        assert_eq!(seen, (202, "", true), "{request:?}");
    }

    /// Runs the handlers of the fixture that were called. Those that wait go on waiting.
    pub(crate) fn run_handlers(&mut self) {
        for run in std::mem::take(&mut self.runs) {
            let mut emitted = Vec::new();
            let input = serde_json::from_str(&run.input).unwrap();
            let outcome = Handler::from_kept(&run.handler).act()(&input, &mut emitted);
            for event in emitted.into_iter().map(event) {
                self.handle(EndpointInput::Handler(run.id, event));
            }
            match outcome {
                Some(outcome) => {
                    self.handle(EndpointInput::Handler(run.id, HandlerEvent::Done(outcome)));
                }
                None => self.runs.push(run),
            }
        }
    }
}

fn event(message: HandlerMessage) -> HandlerEvent {
    match message {
        HandlerMessage::Progress { progress, total, message } => HandlerEvent::Progress(Progress {
            progress,
            total: Some(total),
            message: Some(message),
        }),
        HandlerMessage::Log { level, data } => {
            let level = LoggingLevel::parse(&level).unwrap();
            HandlerEvent::Log(Log { level, logger: None, data: to_raw(&data) })
        }
        HandlerMessage::Ask { .. }
        | HandlerMessage::Interview { .. }
        | HandlerMessage::Change(_) => {
            panic!("the tables call no handler that asks or changes anything")
        }
    }
}
