//! The Model Context Protocol, every revision, as one sans-IO core with thin shells.
//!
//! Reading order, lowest layer first; a module uses only what stands above it in this list.

#![forbid(unsafe_code)]

pub mod protocol;
