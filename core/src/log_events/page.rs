//! The catalogue as the tables of docs/logs.md.

use std::{fmt::Write as _, time::Duration};

use serde_json::Value;

use super::{EventFacts, EventKind, LogEvent, RequestStage};
use crate::{
    error::ComponentName,
    protocol::{Id, Principal},
};

/// Returns the catalogue in Markdown.
pub fn page() -> String {
    let mut page = String::new();
    for kind in EventKind::ALL {
        let declaration = kind.declaration();
        let event = kind.example();
        let logger = declaration.target.replace("::", ".");
        let level = declaration.level.as_str().to_ascii_lowercase();
        let limited = if declaration.is_limited { ", summed up" } else { "" };
        let fields: Vec<_> = declaration.fields.iter().map(|field| format!("`{field}`")).collect();
        let shown: Vec<_> = event
            .fields()
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => format!("{name}={text}"),
                other => format!("{name}={other}"),
            })
            .collect();
        // Writing to a String never fails.
        let _ = write!(
            page,
            "### `{}`\n\n{} Level {level}{limited}; logger `{logger}`.\n\n",
            declaration.name,
            declaration.meaning.trim(),
        );
        if !fields.is_empty() {
            let _ = write!(page, "Fields: {}.\n\n", fields.join(", "));
        }
        let text = event.to_string().replace('\n', "\n    ");
        let _ = write!(page, "```text\n{text}\n  {}\n```\n\n", shown.join(" "));
    }
    page
}

impl EventKind {
    /// Returns an event of this kind, for the documentation.
    fn example(self) -> LogEvent {
        let component = |kind, name: &str| Some(Box::new(ComponentName::new(kind, name)));
        let caller = EventFacts {
            session: Some("a".into()),
            client: Some("desk".into()),
            principal: Some(Principal::new("ada").into()),
            remote: Some([192, 0, 2, 7].into()),
            ..EventFacts::default()
        };
        let call = EventFacts {
            request_id: Id::parse("3"),
            component: component("tool", "open"),
            ..caller.clone()
        };
        let server = EventFacts {
            server: Some("shelf".into()),
            url: Some("http://127.0.0.1:8000/mcp".into()),
            ..EventFacts::default()
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let request =
            |stage, caller| LogEvent::for_request(stage, "tools/call", Some("open"), caller);
        let (reason, detail, facts) = match self {
            Self::HttpRefused => (
                "host",
                "the request is for the host \"evil.example\", which is not served here",
                EventFacts { status: Some(421), session: None, principal: None, ..caller },
            ),
            Self::HttpOverloaded => (
                "max_in_flight",
                "too many requests in flight (option max_in_flight)",
                EventFacts { status: Some(503), ..caller },
            ),
            Self::SessionOpened | Self::SessionRestored | Self::AnswerLost | Self::StreamOpened => {
                ("", "", caller)
            }
            Self::SessionEnded => ("idle", "it was idle for too long", caller),
            Self::SessionEvicted => ("max_sessions", "option max_sessions", caller),
            Self::StreamClosed => ("client_left", "its client left", caller),
            Self::CallRejected => {
                ("invalid_arguments", "invalid arguments for tool \"open\"", call)
            }
            Self::CallFailed => (
                "",
                "tool \"open\" failed (reference 5f0a-1)\nTraceback …",
                EventFacts {
                    component: component("tool", "open"),
                    reference: Some("5f0a-1".into()),
                    ..EventFacts::default()
                },
            ),
            Self::CallTimedOut => (
                "",
                "tool \"open\" took longer than its 2 s",
                EventFacts { duration: seconds(2), ..call },
            ),
            Self::CallCancelled => (
                "",
                "request 3 was cancelled by its client: \"too slow\"",
                EventFacts { duration: seconds(1), ..call },
            ),
            Self::RequestReceived => return request(RequestStage::Received(None), call),
            Self::RequestDone => return request(RequestStage::Done(Duration::from_secs(1)), call),
            Self::RequestTimed => {
                return request(RequestStage::Timed(Duration::from_secs(1)), call);
            }
            Self::CallCut => (
                "client_left",
                "its client left",
                EventFacts { request_id: None, duration: seconds(1), ..call },
            ),
            Self::ServerProblem => {
                ("", "tool \"open\" answered with _meta: …", EventFacts::default())
            }
            Self::WorkerEnded => (
                "",
                "the worker 812 ended with -9: starting another",
                EventFacts { worker: Some((812, -9)), ..EventFacts::default() },
            ),
            Self::StoreWithoutMessages => ("", "", EventFacts::default()),
            Self::StoreUnreadable => {
                ("", "", EventFacts { messages: Some(12), ..EventFacts::default() })
            }
            Self::ServerStarted | Self::ServerStopped => ("", "", server),
            Self::ServerStopping => ("", "", EventFacts { in_flight: Some(2), ..server }),
        };
        LogEvent::new(self, detail).because(reason).with(facts)
    }
}
