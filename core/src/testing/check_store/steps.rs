//! The rules of values, as steps of `get`, `put` and `take`.

use std::time::Duration;

use super::{LONG, RACERS, SHORT};
use crate::store::{Expect, StoreOperation, StoreReply};

const ALL_BYTES: &[u8] = &{
    let mut bytes = [0; 256];
    let mut at = 0;
    while at < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "it is below 256")]
        let byte = at as u8;
        bytes[at] = byte;
        at += 1;
    }
    bytes
};

/// A step: the rule that it checks, the key, the operation, and the reply that the rule demands.
pub(super) type Step = (&'static str, &'static str, Act, Want);

#[derive(Clone, Copy)]
pub(super) enum Act {
    Get,
    /// Reads until the value has ended.
    Wait,
    Take,
    Put(&'static [u8], Duration, If),
    /// Performs an operation several times at once.
    Race(&'static Act),
}

/// The expectation of a `put`.
#[derive(Clone, Copy)]
pub(super) enum If {
    Any,
    Absent,
    /// The version of the key's n-th value in this run; a version that no value had if there are fewer.
    Version(usize),
}

#[derive(Clone, Copy)]
pub(super) enum Want {
    Nothing,
    /// From `get`: with the version of the last `put`.
    Value(&'static [u8]),
    /// A version that is greater than that of each former value of the key.
    Stored,
    Conflict,
    /// One operation of a race succeeds, and the others find that it did.
    Winner,
}

use self::{Act::*, If::*, Want::*};

pub(super) const STEPS: &[Step] = &[
    ("get of a key without a value must return nothing", "a", Get, Nothing),
    ("take of a key without a value must return nothing", "a", Take, Nothing),
    (
        "put with a version must be a conflict if the key has no value",
        "a",
        Put(b"0", LONG, Version(9)),
        Conflict,
    ),
    (
        "put with expect absent must store a value of any bytes if the key has none",
        "a",
        Put(ALL_BYTES, LONG, Absent),
        Stored,
    ),
    ("get must return the bytes and the version of put", "a", Get, Value(ALL_BYTES)),
    (
        "put with expect absent must be a conflict if the key has a value",
        "a",
        Put(b"1", LONG, Absent),
        Conflict,
    ),
    ("put that is a conflict must not change the value", "a", Get, Value(ALL_BYTES)),
    (
        "put with expect any must replace a value, also by an empty one",
        "a",
        Put(b"", LONG, Any),
        Stored,
    ),
    ("get must return an empty value, with its version", "a", Get, Value(b"")),
    (
        "put with the version of a former value must be a conflict",
        "a",
        Put(b"2", LONG, Version(0)),
        Conflict,
    ),
    ("put with the version of the value must replace it", "a", Put(b"3", LONG, Version(1)), Stored),
    ("get must return the value that was put last, with its version", "a", Get, Value(b"3")),
    ("keys that begin in the same way must be independent", "a:b/~%", Get, Nothing),
    ("take must return the value", "a", Take, Value(b"3")),
    ("take must remove the value", "a", Get, Nothing),
    ("take must return a value once", "a", Take, Nothing),
    (
        "put with the version of a value that was taken must be a conflict",
        "a",
        Put(b"4", LONG, Version(2)),
        Conflict,
    ),
    (
        "a value must have a greater version than one that was taken",
        "a",
        Put(b"5", LONG, Absent),
        Stored,
    ),
    ("take must return the value", "a", Take, Value(b"5")),
    ("put must store a value for a second", "short", Put(b"1", SHORT, Absent), Stored),
    ("put must store a value for ten minutes", "long", Put(b"1", LONG, Absent), Stored),
    ("put must store a value for a second", "renewed", Put(b"1", SHORT, Absent), Stored),
    (
        "put with expect any must replace a value and its ttl",
        "renewed",
        Put(b"2", LONG, Any),
        Stored,
    ),
    ("a value must end with its ttl", "short", Wait, Nothing),
    ("take of a value that has ended must return nothing", "short", Take, Nothing),
    (
        "put with expect absent must store a value if the former one has ended",
        "short",
        Put(b"2", LONG, Absent),
        Stored,
    ),
    ("take must return the value", "short", Take, Value(b"2")),
    ("a value must not end before its ttl", "long", Take, Value(b"1")),
    ("a value must not end with the ttl of the one that it replaced", "renewed", Take, Value(b"2")),
    (
        "one of several put with expect absent must store its value",
        "race",
        Race(&Put(b"1", LONG, Absent)),
        Winner,
    ),
    (
        "one of several put with the version of the value must replace it",
        "race",
        Race(&Put(b"2", LONG, Version(0))),
        Winner,
    ),
    ("one of several take must return the value", "race", Race(&Take), Winner),
];

impl Act {
    pub(super) fn operation(self, key: String, versions: &[u64]) -> StoreOperation {
        match self {
            Get | Wait => StoreOperation::Get { key },
            Take => StoreOperation::Take { key },
            Put(value, ttl, expect) => {
                let expect = match expect {
                    Any => Expect::Any,
                    Absent => Expect::Absent,
                    Version(number) => Expect::Version(versions.get(number).copied().unwrap_or(7)),
                };
                StoreOperation::Put { key, value: value.into(), ttl, expect }
            }
            Race(act) => act.operation(key, versions),
        }
    }

    pub(super) fn count(self) -> usize {
        match self {
            Race(_) => RACERS,
            _ => 1,
        }
    }
}

impl Want {
    pub(super) fn is_met(self, replies: &[StoreReply], versions: &[u64]) -> bool {
        let is_new = |version: &u64| versions.iter().all(|former| version > former);
        match (self, replies) {
            (Nothing, [StoreReply::Found(None) | StoreReply::Taken(None)])
            | (Conflict, [StoreReply::Conflict]) => true,
            (Value(value), [StoreReply::Taken(Some(taken))]) => taken == value,
            (Value(value), [StoreReply::Found(Some((found, version)))]) => {
                found == value && versions.last() == Some(version)
            }
            (Stored, [StoreReply::Stored(version)]) => is_new(version),
            (Winner, replies) => {
                let won = |reply: &&StoreReply| match reply {
                    StoreReply::Stored(version) => is_new(version),
                    StoreReply::Taken(taken) => taken.is_some(),
                    _ => false,
                };
                let lost = |reply: &&StoreReply| {
                    matches!(reply, StoreReply::Conflict | StoreReply::Taken(None))
                };
                replies.iter().filter(won).count() == 1
                    && replies.iter().filter(lost).count() == RACERS - 1
            }
            _ => false,
        }
    }
}
