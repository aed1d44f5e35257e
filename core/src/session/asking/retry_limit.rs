//! Whether a question is asked again, where what came back is no answer to it.

use serde_json::Value;

use super::Question;
use crate::{error::Fault, protocol::Method};

/// How often a form is asked at most, where what came back does not fit it.
const MAX_TRIES: u32 = 3;

/// Whether to ask this question again, that was answered so many times, each time with what does not fit it; the error
/// where it was asked often enough. `problem` is what is wrong with the last answer.
pub fn check_retry_limit(question: &Question, tries: u32, problem: &str) -> Result<(), Fault> {
    // The user may do better; a model, or a list of roots, would be no other the next time.
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

/// What the user was asked, else the method.
fn name(question: &Question) -> String {
    let params = serde_json::from_str::<Value>(question.params.get()).unwrap_or_default();
    match params["message"].as_str().filter(|_| question.method == Method::Elicit) {
        Some(message) => format!("{message:?}"),
        None => question.method.as_str().to_owned(),
    }
}
