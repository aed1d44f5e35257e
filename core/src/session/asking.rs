//! What a handler may ask its client, and what the client has answered already. Pure: values in, values out.
//!
//! A question is asked in one of two ways, which the revision's tables tell apart:
//!
//! - *inside a result* (`input_required`): the client sends its request again, with the answers. What was answered so far
//!   travels in the sealed state as a [`Journal`].
//! - *as a real request* on the stream. A handler that returned its questions is run again with [`Answers::with`].

mod capability;
mod fit;

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use self::capability::check_declared;
pub use self::fit::fit;
pub use crate::protocol::Question;
use crate::{
    error::{Fault, FaultKind},
    protocol::{Members, Method, Raw, canonical::canonical, json},
    schema::Schema,
    wire::Wire,
};

/// A question of one call that waits for its answer, by a number of the shell's own.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct AskId(pub u64);

/// What tells one question from another under the same key.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct QuestionDigest([u8; 32]);

/// What is known of a call's questions: which were asked, which were answered. It goes into the sealed state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Journal(BTreeMap<String, Entry>);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    /// The question as it was asked; `None` for an answer that came unasked.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    question: Option<QuestionDigest>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    answer: Option<Raw>,
}

/// The answers that came with a call. Cloning is cheap; the default knows none.
#[derive(Clone, Debug, Default)]
pub struct Answers(Option<Arc<Journal>>);

/// What is to be done about questions that a handler returned.
#[derive(Debug)]
pub enum Round {
    /// Answer the request with these ([`Response::InputRequired`](crate::protocol::Response)), beside a state that seals
    /// [`Answers::journal`].
    Ask(Vec<Question>),
    /// Send each as a request of its own; when all are answered, run the handler again with [`Answers::with`] each.
    Request(Vec<Question>),
}

impl QuestionDigest {
    /// The order of members, and how numbers are written, make no difference.
    pub fn of(method: Method, params: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(method.as_str());
        hash.update([0]);
        hash.update(canonical_text(params));
        Self(hash.finalize().into())
    }
}

impl Answers {
    /// The client's `inputResponses` on top of what the state knew. An answer that the state holds is settled.
    pub fn new(responses: Option<&Raw>, Journal(mut entries): Journal) -> Self {
        let responses: Members<Raw> =
            responses.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
        for (key, answer) in responses.0 {
            let entry = entries.entry(key).or_insert(Entry { question: None, answer: None });
            entry.answer.get_or_insert(answer);
        }
        Self((!entries.is_empty()).then(|| Arc::new(Journal(entries))))
    }

    /// The answer to a question, where there is one that fits it: for an accepted form with the schema's defaults filled
    /// in. Anything else counts as not answered.
    pub fn get(&self, key: &str, method: Method, params: &str) -> Option<Raw> {
        let entry = self.0.as_ref()?.0.get(key)?;
        let answer = entry.answer.as_ref()?;
        let is_other =
            entry.question.is_some_and(|asked| asked != QuestionDigest::of(method, params));
        if is_other { None } else { fit(method, params, answer).ok() }
    }

    /// The same with one more answer: what a client said to a real request.
    #[must_use]
    pub fn with(&self, key: &str, answer: Raw) -> Self {
        let mut journal = self.0.as_deref().cloned().unwrap_or_default();
        journal.0.insert(key.to_owned(), Entry { question: None, answer: Some(answer) });
        Self(Some(Arc::new(journal)))
    }

    /// What the state of the next round holds: all answers so far, and which questions are asked now.
    pub fn journal(&self, asked: &[Question]) -> Journal {
        let mut journal = self.0.as_deref().cloned().unwrap_or_default();
        journal.0.retain(|_, it| it.answer.is_some());
        for Question { key, method, params } in asked {
            let question = Some(QuestionDigest::of(*method, params.get()));
            journal.0.insert(key.clone(), Entry { question, answer: None });
        }
        journal
    }
}

/// What becomes of the questions that a handler returned: a JSON array of `{"key", "method", "params"}`. Those that are
/// answered are not asked again.
///
/// `capabilities` is what the client declared.
pub fn round(
    questions: &str,
    answers: &Answers,
    capabilities: Option<&Raw>,
    wire: &Wire,
) -> Result<Round, Fault> {
    let questions = read(questions)?;
    let open: Vec<_> = questions
        .iter()
        .filter(|it| answers.get(&it.key, it.method, it.params.get()).is_none())
        .cloned()
        .collect();
    if open.is_empty() {
        let keys: Vec<_> = questions.iter().map(|it| it.key.as_str()).collect();
        return Err(misused(&format!(
            "{} is answered already: read it with ctx.answer(question), or ask again under another key",
            keys.join(", ")
        )));
    }
    check_declared(&open, capabilities, wire)?;
    let inside = open.iter().all(|it| wire.input_requests.contains(&it.method));
    Ok(if inside { Round::Ask(open) } else { Round::Request(open) })
}

/// Whether a handler that waits for the answer may send this question now, as a real request.
pub fn check_request(
    method: Method,
    params: &Raw,
    capabilities: Option<&Raw>,
    wire: &Wire,
) -> Result<(), Fault> {
    let question = Question { key: String::new(), method, params: params.clone() };
    check_question(&question)?;
    check_declared(std::slice::from_ref(&question), capabilities, wire)?;
    match wire.server_requests.contains(&method) {
        true => Ok(()),
        false => Err(Fault::new(
            FaultKind::Handler,
            format!(
                "in {} a question travels in the result: return it from the handler (ask.elicit, ask.sample, ask.roots), \
                 and read its answer with ctx.answer(question)",
                wire.revision
            ),
        )),
    }
}

fn read(questions: &str) -> Result<Vec<Question>, Fault> {
    #[derive(Deserialize)]
    struct Given {
        key: String,
        method: String,
        #[serde(default)]
        params: Option<Raw>,
    }
    let given: Vec<Given> =
        serde_json::from_str(questions).map_err(|error| misused(&error.to_string()))?;
    if given.is_empty() {
        return Err(misused("there is none"));
    }
    let mut read: Vec<Question> = Vec::with_capacity(given.len());
    for Given { key, method, params } in given {
        let method = Method::parse(&method)
            .ok_or_else(|| misused(&format!("{method:?} is no method of a question")))?;
        if read.iter().any(|it| it.key == key) {
            return Err(misused(&format!("two have the key {key:?}: give each a key of its own")));
        }
        let question =
            Question { key, method, params: params.unwrap_or_else(|| json::raw("{}".into())) };
        check_question(&question)?;
        read.push(question);
    }
    Ok(read)
}

/// What the client is asked must be something that it can answer at all.
fn check_question(question: &Question) -> Result<(), Fault> {
    let params: Map<String, Value> = serde_json::from_str(question.params.get())
        .map_err(|_| misused("the params of each must be an object"))?;
    match question.method {
        Method::Elicit => {
            let params = Value::Object(params);
            if mode(&params) == "url" {
                return Ok(());
            }
            let schema = params.get("requestedSchema").unwrap_or(&Value::Null);
            match Schema::compile(&schema.to_string()) {
                Ok(_) => Ok(()),
                Err(error) => Err(misused(&format!("requestedSchema can't be used: {error}"))),
            }
        }
        Method::CreateMessage | Method::ListRoots => Ok(()),
        method => Err(misused(&format!("{} is no method of a question", method.as_str()))),
    }
}

fn mode(params: &Value) -> &str {
    params.get("mode").and_then(Value::as_str).unwrap_or("form")
}

fn misused(problem: &str) -> Fault {
    Fault::new(FaultKind::Handler, format!("the handler's questions can't be asked: {problem}"))
}

/// What can't be read stands for itself.
fn canonical_text(params: &str) -> String {
    serde_json::from_str(params).map_or_else(|_| params.to_owned(), |value| canonical(&value))
}

#[cfg(test)]
mod tests;
