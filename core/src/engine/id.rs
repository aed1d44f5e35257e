//! Numbers of what the engine keeps: each kind is a type of its own.

/// One HTTP request and its answer. The shell chooses the number, and never twice the same.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ExchangeId(pub u64);

/// One connection that carries messages both ways. The shell chooses the number, and never twice the same.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId(pub u64);
