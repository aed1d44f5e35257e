//! Groups of clients, which the core decides about.

use gudgeon::bindings::client_group::answer;
use napi_derive::napi;

#[napi]
#[derive(Debug)]
pub struct NativeGroup;

#[napi]
impl NativeGroup {
    /// Answers a question about a group of clients, both JSON.
    #[napi(catch_unwind)]
    pub fn answer(question: String) -> String {
        answer(question.as_bytes())
    }
}
