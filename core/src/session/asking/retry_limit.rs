//! The limit for repeating a question after invalid answers.

use serde_json::Value;

use super::Question;
use crate::{error::Fault, protocol::Method};

/// The maximum number of times that a form is sent.
const MAX_TRIES: u32 = 3;

/// Errors once the retry limit for an invalid answer is reached. `tries` counts the invalid answers, and `problem`
/// describes the last one.
pub fn check_retry_limit(question: &Question, tries: u32, problem: &str) -> Result<(), Fault> {
    // A user can correct the answer; a model or a list of roots would give the same one again.
    let most = if question.method == Method::Elicit { MAX_TRIES } else { 1 };
    if tries < most {
        return Ok(());
    }
    let asked = name(question);
    Err(Fault::invalid_params(match tries {
        1 => format!("the client's answer to {asked} does not fit: {problem}"),
        tries => format!("the client's answer to {asked} does not fit, {tries} times: {problem}"),
    }))
}

/// Returns the message shown to the user, or the method.
fn name(question: &Question) -> String {
    let params = serde_json::from_str::<Value>(question.params.get()).unwrap_or_default();
    match params["message"].as_str().filter(|_| question.method == Method::Elicit) {
        Some(message) => format!("{message:?}"),
        None => question.method.as_str().to_owned(),
    }
}
