//! The steps of the model test by peers, handlers, the host and the clock, with their frequencies.

use proptest::{prelude::*, sample::Index};

pub(super) const PEERS: usize = 3;
/// The tools that clients call; the last is a resource.
pub(super) const TARGETS: [&str; 6] =
    ["plain", "timed", "alone", "forbids", "guarded", "mem://kept"];
pub(super) const KEYS: [&str; 2] = ["a", "b"];

#[derive(Clone, Copy, Debug)]
pub(super) enum ModelStep {
    Call {
        peer: usize,
        target: usize,
        is_modern: bool,
        /// True if the call is so large that it is dispatched outside the engine.
        is_large: bool,
    },
    Retry {
        peer: usize,
        round: Index,
        answers: Brought,
    },
    Cancel {
        peer: usize,
        request: Index,
    },
    Notify {
        peer: usize,
    },
    Finish {
        run: Index,
        outcome: Outcome,
    },
    /// The host replies to a request, perhaps to one that has ended.
    Host {
        ticket: Index,
        reply: Decision,
    },
    /// A large request is dispatched, perhaps after it has ended.
    Dispatch {
        job: Index,
    },
    Ask {
        run: Index,
        key: usize,
    },
    AskAgain {
        run: Index,
        key: usize,
    },
    Wait {
        run: Index,
        blocks: bool,
    },
    Report {
        run: Index,
    },
    Answer {
        question: Index,
        answers: Brought,
    },
    Advance {
        seconds: u64,
    },
    Reopen {
        peer: usize,
    },
}

/// The answers that a client brings.
#[derive(Clone, Copy, Debug)]
pub(super) enum Brought {
    Fitting,
    Invalid,
    Nothing,
}

/// The reply of the host.
#[derive(Clone, Copy, Debug)]
pub(super) enum Decision {
    Shown,
    Hidden,
    /// Fewer answers than components.
    Short,
    Failed,
}

/// The outcome of a handler.
#[derive(Clone, Copy, Debug)]
pub(super) enum Outcome {
    Text,
    Questions,
    Failed,
    Cancelled,
}

pub(super) fn step() -> impl Strategy<Value = ModelStep> {
    let peer = || 0..PEERS;
    let place = any::<Index>;
    let brought = || prop_oneof![3 => Just(Brought::Fitting), 1 => Just(Brought::Invalid), 1 => Just(Brought::Nothing)];
    let outcome = prop_oneof![
        4 => Just(Outcome::Text),
        2 => Just(Outcome::Questions),
        1 => Just(Outcome::Failed),
        1 => Just(Outcome::Cancelled),
    ];
    let reply = prop_oneof![
        4 => Just(Decision::Shown),
        1 => Just(Decision::Hidden),
        1 => Just(Decision::Short),
        1 => Just(Decision::Failed),
    ];
    prop_oneof![
        6 => (peer(), 0..TARGETS.len(), any::<bool>(), prop::bool::weighted(0.2))
            .prop_map(|(peer, target, is_modern, is_large)| ModelStep::Call { peer, target, is_modern, is_large }),
        4 => (peer(), place(), brought())
            .prop_map(|(peer, round, answers)| ModelStep::Retry { peer, round, answers }),
        2 => (peer(), place()).prop_map(|(peer, request)| ModelStep::Cancel { peer, request }),
        1 => peer().prop_map(|peer| ModelStep::Notify { peer }),
        4 => (place(), outcome).prop_map(|(run, outcome)| ModelStep::Finish { run, outcome }),
        2 => place().prop_map(|job| ModelStep::Dispatch { job }),
        3 => (place(), reply).prop_map(|(ticket, reply)| ModelStep::Host { ticket, reply }),
        4 => (place(), 0..KEYS.len()).prop_map(|(run, key)| ModelStep::Ask { run, key }),
        1 => (place(), 0..KEYS.len()).prop_map(|(run, key)| ModelStep::AskAgain { run, key }),
        4 => (place(), any::<bool>()).prop_map(|(run, blocks)| ModelStep::Wait { run, blocks }),
        1 => place().prop_map(|run| ModelStep::Report { run }),
        4 => (place(), brought())
            .prop_map(|(question, answers)| ModelStep::Answer { question, answers }),
        2 => (0..15_u64).prop_map(|seconds| ModelStep::Advance { seconds }),
        1 => peer().prop_map(|peer| ModelStep::Reopen { peer }),
    ]
}
