//! Who moves the bytes.

pub mod stdio;
