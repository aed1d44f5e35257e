//! Bytes to frames and back, without any input or output.

mod line;
pub mod sse;

pub use line::{DEFAULT_LINE_LIMIT, Frame, LineDecoder, encode_line};
pub use sse::{SseDecoder, SseItem};
