//! Fuzzing of the sans-IO machines: an input is a script of operations, and each target holds what a machine does against
//! its rules. See README.md.

#![allow(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a panic is a finding")]

pub mod corpus;
#[cfg(feature = "coverage")]
pub mod coverage;
pub mod memory;
pub mod mutate;
mod script;
mod server;
mod targets;

pub use targets::{TARGETS, Target};

/// Longer inputs are not run: they find nothing that shorter ones don't.
pub const MAX_INPUT: usize = 64 * 1024;

/// Runs a target on one input, and checks the memory that it needs. Panics if a rule is broken.
pub fn run(target: &Target, input: &[u8]) {
    let input = &input[..input.len().min(MAX_INPUT)];
    let (peak, ()) = memory::peak_of(|| (target.run)(input));
    let allowed = target.base_memory + target.memory_per_byte * input.len();
    assert!(peak <= allowed, "{peak} bytes held for {} of input; at most {allowed}", input.len());
}
