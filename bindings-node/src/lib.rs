//! The native half of Gudgeon for Node: reading, writing, the protocol and the registry; JavaScript runs the handlers.

// Functions that JavaScript calls take their arguments by value: they were made for the call.
#![allow(clippy::needless_pass_by_value)]

mod authorization_server;
mod batch;
mod big_integers;
mod client;
mod declare;
mod error;
mod faulty_link;
mod handler;
mod http_message;
mod large_text;
mod large_texts;
mod limits;
mod listening;
mod logs;
mod middleware;
mod mounted;
mod options;
mod paths;
mod questions;
mod reader;
mod reply;
mod schema;
mod served_components;
mod server;
mod shared;
mod spans;
mod store;
mod work_queue;
mod stream;
mod telemetry;
mod test_mode;
mod unread;
mod upstreams;
mod verifier;
mod watchdog;

// The allocator of the whole library.
use gudgeon_allocator as _;

/// Errors name options as TypeScript does, and events are queued for JavaScript's loggers.
#[napi_derive::module_init]
fn init() {
    gudgeon::error::Language::TypeScript.set();
    logs::install();
}
