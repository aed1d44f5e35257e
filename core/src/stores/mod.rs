//! The stores of servers: one in memory, and those of the program.

#[cfg(feature = "bindings")]
pub mod address;
#[cfg(any(feature = "redis", all(feature = "bindings", feature = "auth")))]
mod backoff;
mod built_in;
mod memory;
mod own;
#[cfg(any(feature = "redis", feature = "sqlite"))]
mod per_process;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(all(test, feature = "auth", feature = "client", any(feature = "redis", feature = "sqlite")))]
mod tests;
mod topics;

#[cfg(all(feature = "bindings", feature = "auth"))]
pub(crate) use self::backoff::Backoff;
pub(crate) use self::own::OwnStore;
#[cfg(feature = "redis")]
pub use self::redis::RedisStore;
#[cfg(feature = "sqlite")]
pub use self::sqlite::SqliteStore;
pub use self::{memory::MemoryStore, own::Store};
