//! Gudgeon in Node: the native half. It reads, writes, speaks the protocol and keeps what is offered; JavaScript runs
//! the handlers.

// What JavaScript calls takes its arguments by value: they were made for the call.
#![allow(clippy::needless_pass_by_value)]

mod batch;
mod client;
mod conversations;
mod declare;
mod error;
mod handler;
mod http_options;
mod listening;
mod mounted;
mod served_components;
mod reader;
mod reply;
mod schema;
mod server;
mod shared;
mod shell;
mod stream;
mod test_mode;

/// What thousands of connections held is given back, and used again, when they are gone: glibc keeps and splinters it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
