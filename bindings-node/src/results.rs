//! Results of tools.

use napi_derive::napi;

#[napi]
#[derive(Debug)]
pub struct NativeResult;

#[napi]
impl NativeResult {
    /// Returns whether the data of a result without structured content is the JSON value in its text. `blocks` is the
    /// number of its content blocks.
    #[napi(catch_unwind)]
    pub fn is_data(text: String, blocks: u32, is_error: bool) -> bool {
        gudgeon::peer::is_data(&text, blocks as usize, is_error)
    }
}
