//! A server as a state machine without IO, for programs that bring their own runtime or transport.
//!
//! [`Server`](crate::Server) is built on this machine, and most programs should use it instead. The machine never reads
//! a clock, a socket or random bytes: the caller passes them in.
//!
//! Pass one input to `handle`, with the current time; call `poll` until it
//! returns `None` and carry out each output; pass `Input::Tick` when the time that `deadline` returns has come.
//!
//! A server of one stream, from received bytes to bytes to send:
//!
//! ```
//! use std::{sync::Arc, time::Instant};
//!
//! use gudgeon::{
//!     protocol::{Implementation, Tool},
//!     sans_io::{
//!         Components, Effect, HandlerEvent, Input, Output, Reply, ServerFacts, Service, Start,
//!     },
//! };
//! use serde_json::value::to_raw_value;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The second argument is a handler, of any type. The machine only hands it back.
//! let schema = to_raw_value(&serde_json::json!({ "type": "object" }))?;
//! let mut components = Components::new(ServerFacts::from(Implementation::new("shelf", "1.0")));
//! components.add(Tool::new("greet", schema), Arc::new("the greeter"))?;
//!
//! let now = Instant::now();
//! // Use random bytes: the seed protects what clients keep for the server.
//! let start = Start { now, unix: 1_800_000_000, seed: [7; 32], test_mode: None };
//! let mut service = Service::new(Arc::new(components), &start);
//!
//! let received = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}
//! "#;
//! let mut sent = Vec::new();
//! for line in received.split_inclusive(|byte| *byte == b'\n') {
//!     service.handle(now, Input::Frame(line.trim_ascii_end()));
//!     while let Some(output) = service.poll() {
//!         match output {
//!             Output::Send(frame) | Output::Change(frame) => {
//!                 sent.extend_from_slice(&frame);
//!                 sent.push(b'\n');
//!             }
//!             Output::Effect(Effect::Run(run)) => {
//!                 assert_eq!(run.handler.downcast_ref(), Some(&"the greeter"));
//!                 let done = HandlerEvent::Done(Ok(Reply::Text("hello".into())));
//!                 service.handle(now, Input::Handler(run.id, done));
//!             }
//!             Output::Effect(_) => (),
//!             Output::Compute(computation) => {
//!                 // Large messages, which other clients of a server should not wait for.
//!                 service.handle(now, Input::Computed(computation.run()));
//!             }
//!         }
//!     }
//! }
//! let sent = String::from_utf8(sent)?;
//! assert!(sent.starts_with(r#"{"jsonrpc":"2.0","id":1,"result":{"#) && sent.ends_with("}\n"));
//! assert!(sent.contains(r#""text":"hello""#));
//! # Ok(())
//! # }
//! ```

/// Types of fields and parameters of the machine that its callers pass on, and need not name.
#[doc(hidden)]
pub use crate::{
    engine::{
        AnswerError, AnsweredRequest, Computation, Computed, Load, SpanDescription, SpanSubject,
        TestMode, Ticket,
    },
    log_events::{Declaration, EventKind, LogEvent},
    metrics::{
        Bucket, CallLabels, GoneProcesses, KeptNumbers, Metric, Metrics, Outcome, ProcessNumbers,
        Sample, SampleValue,
    },
    protocol::messages::{TraceContext, TraceIds},
    router::{
        AnyRegistry, Component, ComponentOptions, List, Middleware, MiddlewareFrame, Page,
        RegisteredPrompt, RegisteredResource, RegisteredTemplate, RegisteredTool, Registry,
        RoundLimits, Traces, Visibility, limits::Rejection,
    },
    schema::SchemaProfile,
    session::{
        asking::{AnotherQuestion, Answers, Journal},
        client::{Change, NegotiatedProtocol},
        server::{
            CallContext, CallTrace, ClientIdentity, HttpFacts, ListKind, Progress, SessionValues,
        },
    },
};
pub use crate::{
    engine::{Effect, HandlerEvent, HostReply, HostRequest, Run, RunId, Start},
    framing::TooLong,
    router::{Components, Definition, Failure, Reply, ServerFacts},
    service::{Input, Output, Service},
    session::{asking::AskId, server::Log},
};
