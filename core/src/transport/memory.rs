//! An in-memory connection within one process.

use super::Link;

/// Returns two connected ends; each reads what the other one writes.
pub fn pair() -> (Link, Link) {
    let (one, other) = tokio::io::duplex(64 * 1024);
    let (one_input, one_output) = tokio::io::split(one);
    let (other_input, other_output) = tokio::io::split(other);
    (Link::new(one_input, one_output), Link::new(other_input, other_output))
}
