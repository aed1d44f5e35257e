//! Limits for sending requests again after the connection was lost.

use std::time::{Duration, Instant};

use serde::{Deserialize, Deserializer, de::Error};

use super::super::client_settings::{Limit, limit, time_limit};

/// Limits for repeating requests. In JSON `"safe"` (the default), `"never"`, or
/// `{"attempts"?, "deadlineMs"?, "onlySafe"?}`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Retry {
    attempts: u32,
    /// `None` means no limit.
    deadline: Option<Duration>,
    /// `true` if only requests are repeated that have no effect when they are sent twice.
    only_safe: bool,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, deadline: Some(Duration::from_secs(30)), only_safe: true }
    }
}

impl<'de> Deserialize<'de> for Retry {
    fn deserialize<D: Deserializer<'de>>(it: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Given {
            Named(String),
            Limits(Limits),
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase", deny_unknown_fields)]
        struct Limits {
            attempts: Option<u32>,
            #[serde(default, deserialize_with = "limit")]
            deadline_ms: Limit,
            only_safe: Option<bool>,
        }
        let default = Self::default();
        match Given::deserialize(it)? {
            Given::Named(name) if name == "safe" => Ok(default),
            Given::Named(name) if name == "never" => Ok(Self { attempts: 1, ..default }),
            Given::Named(name) => Err(D::Error::custom(format!("unknown retry {name:?}"))),
            Given::Limits(Limits { attempts, deadline_ms, only_safe }) => Ok(Self {
                attempts: attempts.unwrap_or(default.attempts),
                deadline: deadline_ms.map_or(default.deadline, time_limit),
                only_safe: only_safe.unwrap_or(default.only_safe),
            }),
        }
    }
}

impl Retry {
    /// Begins the attempts of a request.
    pub(super) fn tries(self, is_safe: bool) -> Tries {
        let last = if is_safe || !self.only_safe { self.attempts } else { 1 };
        let end = self.deadline.and_then(|it| Instant::now().checked_add(it));
        Tries { attempt: 1, last, end }
    }
}

/// The attempts of one request.
#[derive(Debug)]
pub(super) struct Tries {
    attempt: u32,
    last: u32,
    end: Option<Instant>,
}

impl Tries {
    /// Returns the number of the attempt, from 1.
    pub(super) fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Advances to the next attempt. Returns `false` if the attempts or the time are used up.
    pub(super) fn next(&mut self) -> bool {
        let is_over = self.end.is_some_and(|it| it <= Instant::now());
        let may_repeat = self.attempt < self.last && !is_over;
        self.attempt += u32::from(may_repeat);
        may_repeat
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempts(retry: &str, is_safe: bool) -> u32 {
        let mut tries = serde_json::from_str::<Retry>(retry).unwrap().tries(is_safe);
        while tries.next() {}
        tries.attempt()
    }

    #[test]
    fn only_safe_requests_are_repeated_unless_all_may_be() {
        for (retry, safe, unsafe_) in [
            (r#""safe""#, 5, 1),
            (r#""never""#, 1, 1),
            (r#"{"attempts":3}"#, 3, 1),
            (r#"{"attempts":2,"deadlineMs":null,"onlySafe":false}"#, 2, 2),
            (r#"{"deadlineMs":0}"#, 1, 1),
        ] {
            assert_eq!((attempts(retry, true), attempts(retry, false)), (safe, unsafe_), "{retry}");
        }
    }

    #[test]
    fn other_values_are_refused() {
        for retry in [r#""always""#, "3", r#"{"attempts":-1}"#, r#"{"tries":1}"#] {
            assert!(serde_json::from_str::<Retry>(retry).is_err(), "{retry}");
        }
    }
}
