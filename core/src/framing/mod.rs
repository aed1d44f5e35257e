//! Conversion between bytes and frames, without I/O.

mod line;
mod separators;
pub mod sse;

pub use line::{DEFAULT_LINE_LIMIT, Frame, LineDecoder, TooLong, encode_line, into_line};
pub use sse::{SseDecoder, SseItem};
