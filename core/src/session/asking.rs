//! Questions of a handler to its client, and the answers received so far. Pure functions of values.
//!
//! A question is sent in one of two ways, depending on the revision's tables:
//!
//! - *inside a result* (`input_required`): the client repeats its request with the answers. Earlier answers travel in
//!   the sealed state as a [`Journal`].
//! - *as a request* on the stream.
//!
//! A handler that returned its questions is run again with the answers; a suspended handler resumes.

mod retry_limit;
mod capability;
mod validate;
mod form;
mod form_schema;
mod journal;
mod keys;
mod question_set;
mod received_answer;
mod sampling;

use serde::Deserialize;
use serde_json::{Map, Value};

use self::capability::check_declared;
pub use self::{
    capability::wants_tools,
    form::check_form,
    form_schema::{AnswerReading, FormSchema, form_schema},
    journal::{AnotherQuestion, Answers, Journal, QuestionDigest},
    keys::QuestionKeys,
    question_set::{QuestionSet, Unsent},
    received_answer::ReceivedAnswer,
    retry_limit::check_retry_limit,
    sampling::{OrderViolation, order_violation},
    validate::{fill, validate},
};
use crate::{
    error::{Fault, FaultKind},
    protocol::{ElicitRequestUrlParams, Method, Question, Raw, canonical::canonical, json},
    wire::Wire,
};

/// The id of an open question of one call, chosen by the engine.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AskId(pub u64);

/// The next step for questions that a handler returned.
#[derive(Debug)]
pub enum Round {
    /// Answer the request with these questions ([`Response::InputRequired`](crate::protocol::Response)) and a state
    /// that seals the journal.
    Ask(Vec<Question>),
    /// Send each question as a request; run the handler again when all are answered.
    Request(Vec<Question>),
}

/// Decides how to ask the questions that a handler returned: a JSON array of `{"key", "method", "params"}`. Answered
/// questions are not asked again.
///
/// `capabilities` are those that the client declared; `None` if the server does not know them. Errors if a question is not valid,
/// two share a key, all are answered already, or a capability is missing.
pub fn round(
    questions: &str,
    answers: &Answers,
    capabilities: Option<&Raw>,
    wire: &Wire,
) -> Result<Round, Fault> {
    let questions = read(questions, wire)?;
    if let Some(Question { key, .. }) = questions.iter().find(|question| answers.is_taken(question))
    {
        return Err(misused(&format!(
            "two questions have the key {key:?}: give each a key of its own"
        )));
    }
    let open: Vec<_> = questions
        .iter()
        .filter(|question| {
            answers.get(&question.key, question.method, question.params.get()).is_none()
        })
        .cloned()
        .collect();
    if open.is_empty() {
        let keys: Vec<_> = questions.iter().map(|question| question.key.as_str()).collect();
        return Err(misused(&format!(
            "{} is answered already: read it with ctx.answer(question), or ask again under another key",
            keys.join(", ")
        )));
    }
    check_declared(&open, capabilities, wire)?;
    let inside = open.iter().all(|question| travels_inside(question.method, wire));
    Ok(if inside { Round::Ask(open) } else { Round::Request(open) })
}

/// Returns `true` if this question travels in a result, and its answer in the next request.
pub fn travels_inside(method: Method, wire: &Wire) -> bool {
    wire.input_requests.contains(&method)
}

/// Returns the capabilities of a client that declared none.
pub(crate) fn nothing_declared() -> Raw {
    json::raw("{}".into())
}

/// Errors if a handler can't put this question to its client. `capabilities` are those that the client declared.
pub fn check(question: &Question, capabilities: Option<&Raw>, wire: &Wire) -> Result<(), Fault> {
    check_all(std::slice::from_ref(question), capabilities, wire)
}

/// Checks questions that are asked together: if one can't be asked, none is.
pub fn check_all(
    questions: &[Question],
    capabilities: Option<&Raw>,
    wire: &Wire,
) -> Result<(), Fault> {
    questions.iter().try_for_each(|question| check_question(question, wire))?;
    check_declared(questions, capabilities, wire)
}

/// Reads the questions that a handler returned, without a check of their params.
fn given(questions: &str) -> Result<Vec<Question>, Fault> {
    #[derive(Deserialize)]
    struct Given {
        key: String,
        method: String,
        #[serde(default)]
        params: Option<Raw>,
    }
    let given: Vec<Given> =
        serde_json::from_str(questions).map_err(|error| misused(&error.to_string()))?;
    let question = |Given { key, method, params }| {
        let method = Method::parse(&method)
            .ok_or_else(|| misused(&format!("{method:?} is not a method of a question")))?;
        let params = params.unwrap_or_else(|| json::raw("{}".into()));
        Ok(Question { key, method, params })
    };
    given.into_iter().map(question).collect()
}

fn read(questions: &str, wire: &Wire) -> Result<Vec<Question>, Fault> {
    let questions = given(questions)?;
    if questions.is_empty() {
        return Err(misused("the list of questions is empty"));
    }
    for (at, question) in questions.iter().enumerate() {
        if questions[..at].iter().any(|earlier| earlier.key == question.key) {
            return Err(misused(&format!(
                "two questions have the key {:?}: give each a key of its own",
                question.key
            )));
        }
        check_question(question, wire)?;
    }
    Ok(questions)
}

/// Checks that the question is one that a client can answer.
fn check_question(question: &Question, wire: &Wire) -> Result<(), Fault> {
    let params: Map<String, Value> = serde_json::from_str(question.params.get())
        .map_err(|_| misused("the params of each question must be an object"))?;
    match question.method {
        Method::Elicit => check_elicitation(&Value::Object(params), wire),
        Method::CreateMessage => sampling::check(&params, wire),
        Method::ListRoots => Ok(()),
        method => Err(misused(&format!("{} is not a method of a question", method.as_str()))),
    }
}

fn check_elicitation(params: &Value, wire: &Wire) -> Result<(), Fault> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    let Some(message) = text("message") else {
        return Err(misused("an elicitation needs a \"message\", which the user reads"));
    };
    match mode(params) {
        "url" => match text("url") {
            Some(url) if ElicitRequestUrlParams::is_address(url) => Ok(()),
            Some(url) => Err(misused(&format!(
                "{message:?} sends the user to {url:?}: give an absolute URL such as \"https://example.org/in\""
            ))),
            None => {
                Err(misused(&format!("{message:?} sends the user to a page but has no \"url\"")))
            }
        },
        "form" => {
            let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
            // A revision without elicitation is reported as a missing capability instead.
            let can_ask = wire.server_requests.contains(&Method::Elicit)
                || wire.input_requests.contains(&Method::Elicit);
            form::check(message, schema, Some(wire).filter(|_| can_ask))
                .map_err(|problem| Fault::new(FaultKind::Handler, problem))
        }
        mode => Err(misused(&format!("{message:?} has the mode {mode:?}: use form or url"))),
    }
}

fn mode(params: &Value) -> &str {
    params.get("mode").and_then(Value::as_str).unwrap_or("form")
}

fn misused(problem: &str) -> Fault {
    Fault::new(FaultKind::Handler, format!("the handler's questions can't be asked: {problem}"))
}

/// Returns the canonical text; invalid JSON is returned unchanged.
fn canonical_text(params: &str) -> String {
    serde_json::from_str(params).map_or_else(|_| params.to_owned(), |value| canonical(&value))
}

#[cfg(test)]
mod tests;
