//! The questions and steps of one call's handler, in the order in which it reached them.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest as _, Sha256};

use super::{Question, canonical_text, check_retry_limit, validate};
use crate::{
    error::Fault,
    protocol::{Members, Method, Raw},
};

/// Identifies a question, apart from its key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuestionDigest([u8; 16]);

/// The error for a key that was used for another question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnotherQuestion;

/// The questions, answers and steps of a call. It is sealed into the request state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Journal(Vec<Entry>);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    #[serde(rename = "k")]
    key: String,
    /// The question; `None` for an unsolicited answer, and for a step.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    question: Option<QuestionDigest>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    answer: Option<Raw>,
    /// The result of a step, which may be null.
    #[serde(
        rename = "s",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "present"
    )]
    step: Option<Raw>,
    /// The number of invalid answers so far.
    #[serde(rename = "t", default, skip_serializing_if = "is_zero")]
    tries: u32,
}

/// The answers that came with a call, and the steps of earlier runs. Clones share their state; the default is empty.
#[derive(Clone, Debug, Default)]
pub struct Answers(Option<Arc<Known>>);

#[derive(Debug)]
struct Known {
    entries: Vec<Held>,
    /// The position from which on entries are discarded, because a question differs from that of an earlier run.
    valid: AtomicUsize,
}

#[derive(Debug)]
struct Held {
    key: String,
    /// Set when the question is asked; a step has none.
    question: OnceLock<QuestionDigest>,
    /// `true` if this run has asked the question.
    is_asked: AtomicBool,
    answer: Option<Raw>,
    /// The result of the answer's check as an answer to the question with this digest.
    checked: OnceLock<(QuestionDigest, Result<Raw, String>)>,
    step: Option<Raw>,
    /// The number of invalid answers before this one.
    tries: u32,
    /// The problem of the current answer, once known.
    problem: OnceLock<String>,
}

impl QuestionDigest {
    fn of_question(question: &Question) -> Self {
        Self::new(question.method, question.params.get())
    }

    /// The digest ignores the order of members and the notation of numbers.
    pub fn new(method: Method, params: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(method.as_str());
        hash.update([0]);
        hash.update(canonical_text(params));
        let mut digest = [0; 16];
        digest.copy_from_slice(&hash.finalize()[..16]);
        Self(digest)
    }
}

impl Serialize for QuestionDigest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl<'de> Deserialize<'de> for QuestionDigest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let bytes = URL_SAFE_NO_PAD.decode(String::deserialize(deserializer)?);
        let digest = bytes.ok().and_then(|bytes| bytes.try_into().ok());
        digest.map(Self).ok_or_else(|| D::Error::custom("a question's digest"))
    }
}

impl Journal {
    /// Records the answer to a question.
    pub fn answered(&mut self, question: &Question, answer: Raw) {
        self.ask(question, Some(answer), self.tries(question));
    }

    /// Records that the answer was rejected; `tries` is the number of invalid answers so far.
    pub fn refused(&mut self, question: &Question, tries: u32) {
        self.ask(question, None, tries);
    }

    /// Returns the number of invalid answers to this question.
    pub fn tries(&self, question: &Question) -> u32 {
        let digest = Some(QuestionDigest::of_question(question));
        let same = |entry: &&Entry| entry.key == question.key && entry.question == digest;
        self.0.iter().find(same).map_or(0, |entry| entry.tries)
    }

    /// Records the questions that are asked now.
    #[must_use]
    pub fn asking(mut self, questions: &[Question]) -> Self {
        for question in questions {
            self.ask(question, None, self.tries(question));
        }
        self
    }

    /// Records the result of a step, as JSON.
    pub fn done(&mut self, key: &str, value: Raw) {
        self.0.retain(|entry| entry.step.is_none() || entry.key != key);
        let (key, step) = (key.to_owned(), Some(value));
        self.0.push(Entry { key, question: None, answer: None, step, tries: 0 });
    }

    /// Appends the entries of a later journal.
    #[must_use]
    pub fn then(mut self, later: &Self) -> Self {
        for entry in &later.0 {
            let mut entry = entry.clone();
            self.0.retain(|earlier| {
                let is_same =
                    earlier.key == entry.key && earlier.step.is_some() == entry.step.is_some();
                if is_same && earlier.question == entry.question {
                    entry.tries = entry.tries.max(earlier.tries);
                }
                !is_same
            });
            self.0.push(entry);
        }
        self
    }

    /// Returns the answer to this question; errors if the key was used for another question.
    pub fn get(&self, question: &Question) -> Result<Option<&Raw>, AnotherQuestion> {
        let Some(entry) =
            self.0.iter().find(|entry| entry.step.is_none() && entry.key == question.key)
        else {
            return Ok(None);
        };
        if entry.question == Some(QuestionDigest::of_question(question)) {
            Ok(entry.answer.as_ref())
        } else {
            Err(AnotherQuestion)
        }
    }

    /// Returns `true` if the journal has no answer and no step.
    pub fn knows(&self) -> bool {
        self.0.iter().any(|entry| entry.answer.is_some() || entry.step.is_some())
    }

    /// Returns the approximate size in bytes.
    pub fn weight(&self) -> usize {
        let size = |value: &Option<Raw>| value.as_ref().map_or(0, |raw| raw.get().len());
        self.0
            .iter()
            .map(|entry| 64 + entry.key.len() + size(&entry.answer) + size(&entry.step))
            .sum()
    }

    fn ask(&mut self, question: &Question, answer: Option<Raw>, tries: u32) {
        let key = question.key.clone();
        self.0.retain(|entry| entry.step.is_some() || entry.key != key);
        let question = Some(QuestionDigest::of_question(question));
        self.0.push(Entry { key, question, answer, step: None, tries });
    }
}

impl Answers {
    /// Merges the client's `inputResponses` into the journal of the state. Answers in the journal take precedence.
    pub fn new(responses: Option<&Raw>, Journal(entries): Journal) -> Self {
        let mut known: Vec<Held> = entries.into_iter().map(Held::from).collect();
        let responses: Members<Raw> = responses
            .and_then(|responses| serde_json::from_str(responses.get()).ok())
            .unwrap_or_default();
        // Keyed, because the number of responses is not limited.
        let mut places = HashMap::new();
        for (at, entry) in known.iter().enumerate().filter(|(_, entry)| entry.step.is_none()) {
            places.entry(entry.key.clone()).or_insert(at);
        }
        for (key, answer) in responses.0 {
            let at = *places.entry(key).or_insert_with_key(|key| {
                known.push(Held {
                    key: key.clone(),
                    question: OnceLock::new(),
                    is_asked: AtomicBool::new(false),
                    answer: None,
                    checked: OnceLock::new(),
                    step: None,
                    tries: 0,
                    problem: OnceLock::new(),
                });
                known.len() - 1
            });
            known[at].answer.get_or_insert(answer);
        }
        let valid = AtomicUsize::new(known.len());
        Self((!known.is_empty()).then(|| Arc::new(Known { entries: known, valid })))
    }

    /// Returns the valid answer to a question; for an accepted form, with defaults filled in. Returns `None` if there
    /// is not a valid answer. If an earlier run asked another question under this key, all later entries are discarded.
    pub fn get(&self, key: &str, method: Method, params: &str) -> Option<Raw> {
        let held = self.held(key, method, params)?;
        if held.problem.get().is_some() {
            return None;
        }
        let digest = QuestionDigest::new(method, params);
        let checked = match held.check(digest, method, params)? {
            (of, checked) if *of == digest => checked.clone(),
            _ => validate(method, params, held.answer.as_ref()?),
        };
        checked.map_err(|problem| held.problem.set(problem)).ok()
    }

    /// Checks the answer to a question ahead of [`Answers::get`], which may be called under a lock.
    pub fn check(&self, question: &Question) {
        let Some(known) = self.0.as_deref() else { return };
        if let Some((_, held)) = known.find(|held| held.step.is_none() && held.key == question.key)
        {
            let Question { method, params, .. } = question;
            held.check(QuestionDigest::of_question(question), *method, params.get());
        }
    }

    /// Checks the answers to questions that a handler returned, like [`Answers::check`].
    pub fn check_all(&self, questions: &str) {
        if self.0.is_some() {
            for question in super::given(questions).iter().flatten() {
                self.check(question);
            }
        }
    }

    /// Rejects the answer that [`Answers::get`] returned; the question counts as unanswered from then on.
    pub fn discard(&self, question: &Question, problem: &str) {
        if let Some(held) = self.held_for(question).filter(|held| held.answer.is_some()) {
            held.problem.get_or_init(|| problem.to_owned());
        }
    }

    /// Rejects the answer to a question, like [`Answers::discard`]; errors if the retry limit is reached.
    pub fn refuse(&self, question: &Question, problem: &str) -> Result<(), Fault> {
        self.discard(question, problem);
        self.may_ask(question)
    }

    /// Errors if the retry limit for invalid answers to this question is reached.
    pub fn may_ask(&self, question: &Question) -> Result<(), Fault> {
        let problem =
            self.held_for(question).and_then(|held| Some((held.tries(), held.problem.get()?)));
        problem.map_or(Ok(()), |(tries, problem)| check_retry_limit(question, tries, problem))
    }

    /// Returns `true` if this run has asked another question under the same key.
    pub fn is_taken(&self, question: &Question) -> bool {
        let known = self.0.as_deref();
        let found = known
            .and_then(|known| known.find(|held| held.step.is_none() && held.key == question.key));
        found.is_some_and(|(_, held)| {
            held.is_asked.load(Ordering::Acquire)
                && held.question.get() != Some(&QuestionDigest::of_question(question))
        })
    }

    /// Returns the problem of an invalid answer to this question.
    pub fn problem(&self, question: &Question) -> Option<&str> {
        self.held_for(question)?.problem.get().map(String::as_str)
    }

    /// Returns the number of invalid answers to this question.
    pub fn tries(&self, question: &Question) -> u32 {
        self.held_for(question).map_or(0, Held::tries)
    }

    /// Returns the result that the step with this key had in an earlier run.
    pub fn step(&self, key: &str) -> Option<Raw> {
        let (_, entry) = self.0.as_deref()?.find(|held| held.step.is_some() && held.key == key)?;
        entry.step.clone()
    }

    /// Returns the journal of all current entries, without answers to questions that were never asked.
    pub fn journal(&self) -> Journal {
        let Some(known) = self.0.as_deref() else { return Journal::default() };
        let entries = known.counting().filter_map(|held| {
            let question = held.question.get().copied();
            let answer = held.answer.clone().filter(|_| held.problem.get().is_none());
            let (step, tries) = (held.step.clone(), held.tries());
            let counts = step.is_some() || (question.is_some() && (answer.is_some() || tries > 0));
            counts.then(|| Entry { key: held.key.clone(), question, answer, step, tries })
        });
        Journal(entries.collect())
    }

    fn held_for(&self, question: &Question) -> Option<&Held> {
        self.held(&question.key, question.method, question.params.get())
    }

    /// Returns the entry of a question.
    fn held(&self, key: &str, method: Method, params: &str) -> Option<&Held> {
        let known = self.0.as_deref()?;
        let (at, entry) = known.find(|held| held.step.is_none() && held.key == key)?;
        let digest = QuestionDigest::new(method, params);
        if *entry.question.get_or_init(|| digest) == digest {
            entry.is_asked.store(true, Ordering::Release);
            return Some(entry);
        }
        if !entry.is_asked.load(Ordering::Acquire) {
            known.valid.fetch_min(at, Ordering::AcqRel);
        }
        None
    }
}

impl Known {
    fn counting(&self) -> impl Iterator<Item = &Held> {
        self.entries.iter().take(self.valid.load(Ordering::Acquire))
    }

    fn find(&self, is_it: impl Fn(&Held) -> bool) -> Option<(usize, &Held)> {
        self.counting().enumerate().find(|(_, held)| is_it(held))
    }
}

impl Held {
    /// Checks the answer for the first question that is asked with its key. Returns that question and the result.
    fn check(
        &self,
        digest: QuestionDigest,
        method: Method,
        params: &str,
    ) -> Option<&(QuestionDigest, Result<Raw, String>)> {
        let answer = self.answer.as_ref()?;
        Some(self.checked.get_or_init(|| (digest, validate(method, params, answer))))
    }

    /// Returns the number of invalid answers, including the current one.
    fn tries(&self) -> u32 {
        self.tries.saturating_add(u32::from(self.problem.get().is_some()))
    }
}

impl From<Entry> for Held {
    fn from(Entry { key, question, answer, step, tries }: Entry) -> Self {
        // Only valid answers are recorded.
        let checked = question.zip(answer.clone()).map(|(digest, answer)| (digest, Ok(answer)));
        let checked = checked.map(OnceLock::from).unwrap_or_default();
        let question = question.map(OnceLock::from).unwrap_or_default();
        let is_asked = AtomicBool::new(false);
        Self { key, question, is_asked, answer, checked, step, tries, problem: OnceLock::new() }
    }
}

/// Reads a member that is there: null is a result, and not the absence of one.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Raw::deserialize(deserializer).map(Some)
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
fn is_zero(tries: &u32) -> bool {
    *tries == 0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test that fails here says where")]

    use serde_json::json;

    use super::*;
    use crate::protocol::json::to_raw;

    fn question(property: &str) -> Question {
        let form = json!({"mode": "form", "message": "Which?", "requestedSchema": {
            "type": "object", "properties": {property: {"type": "string"}}, "required": [property],
        }});
        Question { key: "a".into(), method: Method::Elicit, params: to_raw(&form) }
    }

    fn get(answers: &Answers, question: &Question) -> Option<Raw> {
        answers.get(&question.key, question.method, question.params.get())
    }

    #[test]
    fn an_answer_is_checked_ahead_and_once() {
        let answer = json!({"a": {"action": "accept", "content": {"name": "x"}}});
        let answers = Answers::new(Some(&to_raw(&answer)), Journal::default());
        let checked = || answers.0.as_ref().unwrap().entries[0].checked.get();
        assert!(checked().is_none());
        answers.check_all(&json!([{"key": "b", "method": "elicitation/create"}]).to_string());
        assert!(checked().is_none(), "nobody asked it");
        let asked = question("name");
        let same = json!([{"key": "a", "method": "elicitation/create", "params": asked.params}]);
        answers.check_all(&same.to_string());
        let (of, result) = checked().unwrap();
        assert_eq!(*of, QuestionDigest::of_question(&asked));
        assert_eq!(get(&answers, &asked).unwrap().get(), result.as_ref().unwrap().get());
    }

    #[test]
    fn an_answer_is_checked_again_for_another_question() {
        let answer = json!({"a": {"action": "accept", "content": {"name": "x"}}});
        let answers = Answers::new(Some(&to_raw(&answer)), Journal::default());
        answers.check(&question("city"));
        assert!(get(&answers, &question("name")).is_some());
    }

    #[test]
    fn answers_of_earlier_rounds_were_checked_when_they_came() {
        let (asked, answer) = (question("name"), to_raw(&json!({"action": "decline"})));
        let mut journal = Journal::default();
        journal.answered(&asked, answer.clone());
        let answers = Answers::new(None, journal);
        assert!(answers.0.as_ref().unwrap().entries[0].checked.get().is_some());
        assert_eq!(get(&answers, &asked).unwrap().get(), answer.get());
    }
}
