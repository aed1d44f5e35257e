//! Tests of the sans-IO layers through their public API, with a manual clock.

#![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

mod support;

mod asking;
mod asking_again;
mod asking_wrongly;
#[cfg(feature = "auth")]
mod auth_authenticator;
#[cfg(feature = "auth")]
mod auth_dpop;
#[cfg(feature = "auth")]
mod auth_log;
#[cfg(feature = "auth")]
mod auth_store;
#[cfg(feature = "auth")]
mod auth_tokens;
mod bounds;
mod client_listening;
mod client_known_revision;
mod client_negotiation;
mod client_pair;
mod client_properties;
mod client_questions;
mod client_requests;
mod client_unreadable;
mod component_scopes;
mod dialect_clients;
mod dialect_endpoint;
mod endpoint_asking;
mod endpoint_batches;
mod endpoint_bodies;
mod endpoint_eras;
mod endpoint_forwarded;
mod endpoint_guards;
mod endpoint_heads;
mod endpoint_http_sse;
mod endpoint_listeners;
mod endpoint_mcp_headers;
mod endpoint_modern;
mod endpoint_probes;
mod endpoint_replies;
mod endpoint_routes;
mod endpoint_session_ids;
mod endpoint_sessions;
mod endpoint_shares;
mod endpoint_subscriptions;
mod engine_model;
mod flow;
mod fuzz_endpoint;
mod fuzz_service;
mod handed_over;
mod ids;
mod kept_results;
mod large_requests;
mod layering;
mod listeners;
mod lists;
mod log_events;
mod metrics;
mod middleware;
mod suspension;
mod suspension_limits;
mod other_processes;
mod protocol_types;
mod registration;
mod result_cache;
mod test_mode;
mod schema_suite;
mod sealed_sessions;
mod service;
mod session_values;
mod sessionless;
mod spec_schemas;
mod stored_sessions;
mod subscription_changes;
mod subscriptions;
mod subscriptions_properties;
#[cfg(feature = "auth")]
mod token_expiry;
mod traces;
mod transcripts;
mod visible;
mod waiting;
mod worker_metrics;
