//! Byte streams of any kind.

use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream of any kind, for code that several kinds share: each copy of a connection's code is large.
pub(crate) trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}
