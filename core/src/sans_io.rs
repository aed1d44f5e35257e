//! The protocol as state machines without IO, for programs that bring their own runtime or transport.
//!
//! [`Server`](crate::Server) and [`Client`](crate::Client) are built on these machines, and most programs should use
//! them instead. A machine never reads a clock, a socket or random bytes: the caller passes them in.
//!
//! Every machine is driven in the same way. Pass one input to `handle`, with the current time; call `poll` until it
//! returns `None` and carry out each output; pass `Input::Tick` when the time that `deadline` returns has come.
//!
//! A server of one stream of messages:
//!
//! ```
//! use std::{sync::Arc, time::Instant};
//!
//! use gudgeon::{
//!     protocol::{Implementation, Tool},
//!     sans_io::server::{
//!         Components, Effect, HandlerEvent, Input, Output, RegisteredTool, Reply, ServerFacts, Service, Start,
//!     },
//! };
//! use serde_json::value::to_raw_value;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // The second argument is a handler: any type that can be cloned. The machine only hands it back.
//! let schema = to_raw_value(&serde_json::json!({ "type": "object" }))?;
//! let tool = RegisteredTool::new(Tool::new("greet", schema), "the greeter")?;
//! let mut components = Components::new(ServerFacts::new(Implementation::new("shelf", "1.0")));
//! components.tools.add(tool, true)?;
//!
//! let now = Instant::now();
//! // Use random bytes: the seed protects what clients keep for the server.
//! let mut service = Service::new(Arc::new(components), &Start::new(now, 1_800_000_000, [7; 32]));
//!
//! let request = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","_meta":{
//!     "io.modelcontextprotocol/protocolVersion":"2026-07-28",
//!     "io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},
//!     "io.modelcontextprotocol/clientCapabilities":{}}}}"#;
//! service.handle(now, Input::Frame(request.as_bytes()));
//! let mut sent = Vec::new();
//! while let Some(output) = service.poll() {
//!     match output {
//!         Output::Send(frame) | Output::Change(frame) => sent.push(String::from_utf8(frame)?),
//!         Output::Effect(Effect::Run(run)) => {
//!             assert_eq!(run.handler, "the greeter");
//!             let done = HandlerEvent::Done(Ok(Reply::Text("hello".into())));
//!             service.handle(now, Input::Handler(run.id, done));
//!         }
//!         Output::Effect(_) => (),
//!     }
//! }
//! assert_eq!(sent.len(), 1);
//! assert!(sent[0].contains(r#""text":"hello""#));
//! # Ok(())
//! # }
//! ```

/// The client of one connection, from the negotiation of the revision to the end.
pub mod client {
    pub use crate::session::client::{
        Ask, Change, ClientConfig, ClientSession, Input, LogMessage, Output, Progress, RequestKey,
        RequestOptions, ServerIdentity, Spoken,
    };
}

/// A server of one stream of messages: its components, the calls in progress and the work for the caller.
pub mod server {
    pub use crate::{
        engine::{
            Effect, HandlerEvent, HostReply, HostRequest, Input, Load, Output, Run, RunId, Service,
            Start, Ticket,
        },
        error::fault::{Fault, FaultKind},
        router::{
            ComponentOptions, Components, Failure, RegisteredPrompt, RegisteredResource,
            RegisteredTemplate, RegisteredTool, Registry, Reply, RoundLimits, ServerFacts,
        },
        session::{
            asking::AskId,
            server::{CallContext, ClientIdentity, HttpFacts, Log},
        },
    };
}

/// A server at one HTTP address: requests without a session, sessions, their streams, and message connections.
pub mod http {
    pub use crate::{
        http::{
            Admission, AdmittedHead, AdmittedRequest, Arrival, ConnectionId, Endpoint,
            EndpointConfig, EndpointInput, EndpointOutput, ExchangeId, GuardConfig, Part, Reader,
            Refused,
        },
        protocol::messages::Frame,
    };
}

/// Streams of bytes to messages, one on each line.
pub mod lines {
    pub use crate::framing::{DEFAULT_LINE_LIMIT, Frame, LineDecoder, encode_line};
}
