//! What one call's handler has asked and done so far, in the order in which it came to it.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};
use sha2::{Digest as _, Sha256};

use super::{Question, canonical_text, fit};
use crate::protocol::{Members, Method, Raw};

/// What tells one question from another under the same key.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct QuestionDigest([u8; 16]);

/// A key that stands for another question already.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AnotherQuestion;

/// What is known of a call's questions and steps: which were asked, which were answered, what was done. It goes into the
/// sealed state.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(transparent)]
pub struct Journal(Vec<Entry>);

#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    #[serde(rename = "k")]
    key: String,
    /// The question as it was asked; `None` for an answer that came unasked, and for a step.
    #[serde(rename = "q", default, skip_serializing_if = "Option::is_none")]
    question: Option<QuestionDigest>,
    #[serde(rename = "a", default, skip_serializing_if = "Option::is_none")]
    answer: Option<Raw>,
    /// What a step gave.
    #[serde(rename = "s", default, skip_serializing_if = "Option::is_none")]
    step: Option<Raw>,
}

/// What came with a call: the answers so far, and what was done in earlier runs. Clones mean the same call; the default
/// knows nothing.
#[derive(Clone, Debug, Default)]
pub struct Answers(Option<Arc<Known>>);

#[derive(Debug)]
struct Known {
    entries: Vec<Held>,
    /// A question that is not the one of an earlier run leaves behind all that came after it.
    valid: AtomicUsize,
}

#[derive(Debug)]
struct Held {
    key: String,
    /// Set when it is asked; a step has none.
    question: OnceLock<QuestionDigest>,
    answer: Option<Raw>,
    step: Option<Raw>,
}

impl QuestionDigest {
    /// The order of members, and how numbers are written, make no difference.
    pub fn of(method: Method, params: &str) -> Self {
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
        let digest = bytes.ok().and_then(|it| it.try_into().ok());
        digest.map(Self).ok_or_else(|| D::Error::custom("a question's digest"))
    }
}

impl Journal {
    /// What was answered to a question.
    pub fn answered(&mut self, question: &Question, answer: Raw) {
        let digest = QuestionDigest::of(question.method, question.params.get());
        self.ask(&question.key, digest, Some(answer));
    }

    /// These are asked now, and wait for their answers.
    #[must_use]
    pub fn asking(mut self, questions: &[Question]) -> Self {
        for question in questions {
            let digest = QuestionDigest::of(question.method, question.params.get());
            self.ask(&question.key, digest, None);
        }
        self
    }

    /// What a step gave, as JSON.
    pub fn done(&mut self, key: &str, value: Raw) {
        self.0.retain(|it| it.step.is_none() || it.key != key);
        self.0.push(Entry { key: key.to_owned(), question: None, answer: None, step: Some(value) });
    }

    /// The same, and then what came later.
    #[must_use]
    pub fn then(mut self, later: &Self) -> Self {
        for entry in &later.0 {
            self.0.retain(|it| it.key != entry.key || it.step.is_some() != entry.step.is_some());
            self.0.push(entry.clone());
        }
        self
    }

    /// What this question was answered; an error when the key stands for another question.
    pub fn get(&self, question: &Question) -> Result<Option<&Raw>, AnotherQuestion> {
        let Some(entry) = self.0.iter().find(|it| it.step.is_none() && it.key == question.key)
        else {
            return Ok(None);
        };
        let digest = QuestionDigest::of(question.method, question.params.get());
        if entry.question == Some(digest) {
            Ok(entry.answer.as_ref())
        } else {
            Err(AnotherQuestion)
        }
    }

    /// Bytes that it holds, about.
    pub fn weight(&self) -> usize {
        let size = |it: &Option<Raw>| it.as_ref().map_or(0, |it| it.get().len());
        self.0.iter().map(|it| 64 + it.key.len() + size(&it.answer) + size(&it.step)).sum()
    }

    fn ask(&mut self, key: &str, question: QuestionDigest, answer: Option<Raw>) {
        self.0.retain(|it| it.step.is_some() || it.key != key);
        self.0.push(Entry { key: key.to_owned(), question: Some(question), answer, step: None });
    }
}

impl Answers {
    /// The client's `inputResponses` on top of what the state knew. An answer that the state holds is settled.
    pub fn new(responses: Option<&Raw>, Journal(entries): Journal) -> Self {
        let mut known: Vec<Held> = entries.into_iter().map(Held::from).collect();
        let responses: Members<Raw> =
            responses.and_then(|it| serde_json::from_str(it.get()).ok()).unwrap_or_default();
        for (key, answer) in responses.0 {
            match known.iter_mut().find(|it| it.step.is_none() && it.key == key) {
                Some(entry) => drop(entry.answer.get_or_insert(answer)),
                None => known.push(Held {
                    key,
                    question: OnceLock::new(),
                    answer: Some(answer),
                    step: None,
                }),
            }
        }
        let valid = AtomicUsize::new(known.len());
        Self((!known.is_empty()).then(|| Arc::new(Known { entries: known, valid })))
    }

    /// The answer to a question, where there is one that fits it: for an accepted form with the schema's defaults filled
    /// in. Anything else counts as not answered, and another question under this key in an earlier run makes everything
    /// that came after it count no more.
    pub fn get(&self, key: &str, method: Method, params: &str) -> Option<Raw> {
        let known = self.0.as_deref()?;
        let (at, entry) = known.find(|it| it.step.is_none() && it.key == key)?;
        let digest = QuestionDigest::of(method, params);
        if *entry.question.get_or_init(|| digest) != digest {
            known.valid.fetch_min(at, Ordering::AcqRel);
            return None;
        }
        fit(method, params, entry.answer.as_ref()?).ok()
    }

    /// What the step with this key gave in an earlier run.
    pub fn step(&self, key: &str) -> Option<Raw> {
        let (_, entry) = self.0.as_deref()?.find(|it| it.step.is_some() && it.key == key)?;
        entry.step.clone()
    }

    /// All of it that still counts. Answers to what nobody asked are left out.
    pub fn journal(&self) -> Journal {
        let Some(known) = self.0.as_deref() else { return Journal::default() };
        let entries = known.counting().filter_map(|it| {
            let question = it.question.get().copied();
            let is_settled = it.step.is_some() || (question.is_some() && it.answer.is_some());
            let (answer, step) = (it.answer.clone(), it.step.clone());
            is_settled.then(|| Entry { key: it.key.clone(), question, answer, step })
        });
        Journal(entries.collect())
    }
}

impl Known {
    fn counting(&self) -> impl Iterator<Item = &Held> {
        self.entries.iter().take(self.valid.load(Ordering::Acquire))
    }

    fn find(&self, is_it: impl Fn(&Held) -> bool) -> Option<(usize, &Held)> {
        self.counting().enumerate().find(|(_, it)| is_it(it))
    }
}

impl From<Entry> for Held {
    fn from(Entry { key, question, answer, step }: Entry) -> Self {
        let question = question.map(OnceLock::from).unwrap_or_default();
        Self { key, question, answer, step }
    }
}
