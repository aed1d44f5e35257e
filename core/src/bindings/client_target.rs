//! Targets of clients that are given as data, and sockets.

#[cfg(unix)]
use std::{io, os::unix::net::UnixStream};

pub use crate::client::ConfiguredTarget;
#[cfg(unix)]
use crate::client::Target;

/// Returns the target at the other end of a socket pair. Must be called inside a tokio runtime. `name` is the target's
/// name in errors.
#[cfg(unix)]
pub fn stream_target(stream: UnixStream, name: String) -> io::Result<Target> {
    stream.set_nonblocking(true)?;
    let (input, output) = tokio::net::UnixStream::from_std(stream)?.into_split();
    Ok(Target::Stream(crate::transport::Link::new(input, output), name))
}
