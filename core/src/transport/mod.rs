//! Who moves the bytes.

pub mod child;
pub mod memory;
pub mod stdio;
pub mod stream;

pub use child::Command;
pub use stream::Link;
