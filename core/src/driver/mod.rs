//! Servers that shells drive: an [`Endpoint`](crate::http::Endpoint) behind a lock; and the end of their processes.

mod amounts;
#[cfg(feature = "auth")]
mod auth;
#[cfg(feature = "auth")]
mod auth_config;
#[cfg(feature = "auth")]
mod auth_proxy;
mod debug;
mod endpoint;
mod endpoint_state;
mod event_log;
mod handler_events;
mod hosted;
pub(crate) mod ledger;
mod lines;
#[cfg(feature = "http")]
mod measured_store;
#[cfg(feature = "lock-waits")]
mod lock_waits;
mod native_host;
mod pipe;
#[cfg(feature = "http")]
mod sealed_store;
mod sending;
mod session_table;
pub mod small_file;
mod start_gate;
mod starting;
mod state_keys;
pub mod stderr;
#[cfg(feature = "http")]
mod store_link;
mod stream_connection;
mod task;
mod watchdog;
pub(crate) mod watched_files;
mod work;
mod writer;

#[cfg(feature = "auth")]
pub(crate) use auth::{AuthServer, Fetcher, authenticate_request, authenticate_upgrade};
#[cfg(feature = "auth")]
pub use auth_config::auth_config;
pub use debug::shows_errors;
pub use endpoint::EndpointServer;
pub use hosted::Host;
pub(crate) use hosted::{HostedEndpoint, Rest, keep_time};
pub use ledger::{Holding, Ledgers};
#[cfg(feature = "lock-waits")]
pub use lock_waits::lock_waits;
pub(crate) use native_host::{FIRST_NATIVE_ASK, NativeHost};
pub use pipe::ReadBuffer;
pub use sending::{Outbox, Unread};
pub use session_table::{SessionTable, ValuesUpdate};
pub use state_keys::{STATE_KEYS, STATE_KEYS_FILE, set_state_keys};
pub use stream_connection::StreamConnection;
pub use task::{Boxed, boxed};
pub use watchdog::Watchdog;
pub use work::{EndpointStep, Work};

#[cfg(feature = "auth")]
use crate::auth::Moment;
use crate::{clock, engine::Start};

/// Returns the current time with a random seed.
///
/// # Panics
/// Panics if the system has no random bytes.
pub fn start() -> Start {
    let mut seed = [0; 32];
    getrandom::fill(&mut seed).expect("the system gives random bytes");
    Start { now: clock::now(), unix: clock::unix(), seed, test_mode: None }
}

/// Returns the current time with fresh random bytes.
///
/// # Panics
/// Panics if the system has no random bytes, because without them nothing is secret.
#[cfg(feature = "auth")]
pub(crate) fn moment() -> Moment {
    let Start { now, unix, seed, .. } = start();
    Moment { now, unix, random: seed }
}
