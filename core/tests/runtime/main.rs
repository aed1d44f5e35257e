//! Running servers and clients: in memory, over sockets and child processes.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod support;

mod authorization_server;
#[cfg(unix)]
mod behind_proxies;
mod cancelled_runs;
mod client_answers;
mod client_auth;
mod client_cache;
mod client_calls;
#[cfg(unix)]
mod client_checks;
mod client_configuration;
mod client_child;
mod client_declares;
mod client_failed_writes;
mod client_group;
mod client_group_changes;
mod client_http;
mod client_http_legacy;
mod client_http_sessions;
mod client_http_sse;
mod client_listen;
mod client_memory;
mod client_messages;
mod client_middleware;
mod client_prompts;
mod client_proxy;
mod client_reconnect;
mod client_rounds;
mod client_subscribe;
mod client_targets;
mod client_tls;
mod client_transcripts;
mod client_wires;
mod dialect_listen;
mod drain;
mod forms;
mod half_closed;
mod health;
mod http2;
mod http_server;
mod test_server;
#[cfg(unix)]
mod large_messages;
mod metrics;
#[cfg(unix)]
mod own_capabilities;
mod postponed;
mod reloaded;
mod resolve_inside;
mod resource_paths;
mod routes;
mod server_asking;
mod server_auth;
mod server_asking_again;
mod server_handlers;
mod server_lifecycle;
mod server_middleware;
mod server_mounts;
mod server_registration;
mod server_results;
mod server_running;
#[cfg(unix)]
mod server_signals;
mod shared_store;
mod server_spans;
mod server_state;
mod server_store;
mod server_logs;
mod server_waiting;
#[cfg(unix)]
mod unread;
mod upstream;
mod upstream_entries;
mod wires_server;
