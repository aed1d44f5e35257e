//! A wire in memory: two ends of one process.

use super::Link;

/// Two ends, each of which reads what the other wrote.
pub fn pair() -> (Link, Link) {
    let (one, other) = tokio::io::duplex(64 * 1024);
    let (one_input, one_output) = tokio::io::split(one);
    let (other_input, other_output) = tokio::io::split(other);
    (Link::new(one_input, one_output), Link::new(other_input, other_output))
}
