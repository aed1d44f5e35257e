//! Groups of clients, which the core decides about.

use gudgeon::{
    bindings::{
        client_group::answer,
        group_targets::{self, Targets},
    },
    error::Language,
};
use napi::bindgen_prelude::{Either, Unknown};
use napi_derive::napi;

use super::refused_value;
use crate::options::Js;

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

    /// Returns the targets by name in what a group was given, or the path of the file that holds them.
    #[napi(catch_unwind)]
    pub fn targets(given: Unknown<'_>) -> napi::Result<Either<String, Unknown<'_>>> {
        match group_targets::read(Language::TypeScript, Js(given)) {
            Ok(Targets::File(path)) => Ok(Either::A(path)),
            Ok(Targets::Named(targets)) => Ok(Either::B(targets.0)),
            Err(problem) => Err(refused_value(problem)),
        }
    }

    /// Returns the targets by name in the text of a JSON file, as JSON.
    #[napi(catch_unwind)]
    pub fn file_targets(path: String, text: String) -> napi::Result<String> {
        group_targets::read_file(Language::TypeScript, &path, text.as_bytes())
            .map_err(refused_value)
    }
}
