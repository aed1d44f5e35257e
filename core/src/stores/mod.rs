//! The stores of servers: one in memory, and those of the program.

mod built_in;
mod memory;
mod own;
mod topics;

pub(crate) use self::own::OwnStore;
pub use self::{memory::MemoryStore, own::Store};
