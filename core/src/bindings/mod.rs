//! Logic that the Python and TypeScript packages share and that Rust programs have no use for. Not a public interface:
//! it changes with the packages.

#[cfg(feature = "auth")]
pub mod auth_runtime;
#[cfg(feature = "auth")]
pub mod authorization_server;
pub(crate) mod client_answers;
#[cfg(feature = "auth")]
pub(crate) mod client_auth;
pub mod client_group;
pub mod client_middleware;
pub mod client_notice;
pub mod client_operation;
pub mod client_questions;
pub mod client_roots;
pub mod client_runtime;
pub mod client_settings;
pub mod client_target;
pub mod component_changes;
pub mod faulty_link;
#[cfg(feature = "auth")]
pub mod host_store;
pub mod http_options;
#[cfg(feature = "http")]
pub mod incoming_body;
pub mod logs;
pub mod mailbox;
#[cfg(feature = "http")]
pub mod mounts;
pub mod options;
#[cfg(feature = "auth")]
pub mod store;
#[cfg(feature = "auth")]
pub mod store_object;
#[cfg(feature = "http")]
pub mod store_runtime;
pub mod subscriptions;
pub mod telemetry;
pub mod unknown_name;
#[cfg(feature = "auth")]
pub mod upstreams;
pub mod waiting;
#[cfg(all(unix, feature = "auth", feature = "http"))]
pub mod worker_group;

pub use crate::client::group_targets;
pub use crate::server::resolve_inside::resolve as resolve_inside;
pub use crate::transport::child::terminate_all as terminate_servers;
#[cfg(feature = "keyring")]
pub use crate::transport::sign_in::TokenKeyring;
#[cfg(feature = "auth")]
pub use crate::transport::sign_in::{TokenFile, open_browser};
