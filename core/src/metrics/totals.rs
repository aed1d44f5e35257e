//! The counts of a process at one moment, which can be added up and sent to other processes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{CallLabels, MAX_SERIES, MAX_WORDS, OTHER, Outcome, histogram::Durations};

/// The counts since they were turned on.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub(super) struct Totals {
    #[serde(with = "pairs")]
    pub(super) calls: BTreeMap<CallKey, Durations>,
    pub(super) refusals: BTreeMap<String, u64>,
    /// By the name of the operation and its outcome.
    #[serde(with = "pairs")]
    pub(super) store: BTreeMap<(String, String), Durations>,
}

/// The properties by which calls are counted, in the order in which they are written.
#[derive(Clone, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
pub(super) struct CallKey {
    pub(super) method: String,
    pub(super) name: String,
    pub(super) revision: String,
    pub(super) outcome: Outcome,
}

impl CallKey {
    pub(super) fn new(labels: &CallLabels, outcome: Outcome) -> Self {
        Self {
            method: labels.method.to_string(),
            name: labels.name.to_string(),
            revision: labels.revision.to_owned(),
            outcome,
        }
    }
}

impl Totals {
    /// Adds the counts of another process. Those beyond the limits of one process are counted together, as there.
    pub(super) fn add(&mut self, other: &Self) {
        for (key, durations) in &other.calls {
            let is_full = self.calls.len() >= MAX_SERIES * Outcome::ALL.len();
            let key = match is_full && !self.calls.contains_key(key) {
                true => {
                    let labels = CallLabels { method: OTHER.into(), name: "".into(), revision: "" };
                    CallKey::new(&labels, key.outcome)
                }
                false => key.clone(),
            };
            self.calls.entry(key).or_default().add(durations);
        }
        for (reason, count) in &other.refusals {
            if self.refusals.len() < MAX_WORDS || self.refusals.contains_key(reason) {
                let sum = self.refusals.entry(reason.clone()).or_default();
                *sum = sum.saturating_add(*count);
            }
        }
        for (key, durations) in &other.store {
            if self.store.len() < MAX_WORDS || self.store.contains_key(key) {
                self.store.entry(key.clone()).or_default().add(durations);
            }
        }
    }
}

/// Writes a map as a list of pairs, because keys of JSON objects are strings.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<K: Serialize, V: Serialize, S: Serializer>(
        map: &BTreeMap<K, V>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, K, V, D>(deserializer: D) -> Result<BTreeMap<K, V>, D::Error>
    where
        K: Deserialize<'de> + Ord,
        V: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        Vec::<(K, V)>::deserialize(deserializer).map(BTreeMap::from_iter)
    }
}
