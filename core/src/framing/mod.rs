//! Conversion between bytes and frames, without I/O.

mod line;
mod separators;
pub mod sse;

pub(crate) use line::beginning_of;
pub use line::{DEFAULT_LINE_LIMIT, Frame, LineDecoder, encode_line, into_line};
pub use sse::{SseDecoder, SseItem};
