//! The start of an engine: the clock's reading, secrets, and numbers that are never used twice.

use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::{
    request_state::{self, Binding, KeyRing, Opened, Refused, RoundId, Sealed},
    test_mode::TestMode,
};
use crate::{protocol::Inputs, router::RoundLimits, session::asking::Journal};

/// The circumstances under which a service starts: what sans-IO code can't find out by itself.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub now: Instant,
    /// The same moment, in seconds since 1970.
    pub unix: u64,
    /// Random, and secret.
    pub seed: [u8; 32],
    /// It serves a test.
    pub test_mode: Option<TestMode>,
}

impl Start {
    /// Creates the start of an engine: the current time, the same moment in seconds since 1970, and random bytes that
    /// nobody else knows.
    pub fn new(now: Instant, unix: u64, seed: [u8; 32]) -> Self {
        Self { now, unix, seed, test_mode: None }
    }
}

/// Seals and opens what clients carry between the rounds of a call.
#[derive(Debug)]
pub(crate) struct Sealing {
    keys: KeyRing,
    start: Start,
    made: u64,
}

impl Sealing {
    /// Without keys of the user's, states are good for this process only.
    pub(crate) fn new(keys: &[Vec<u8>], start: &Start) -> Self {
        let seed = start.test_mode.and_then(|it| it.state_key).unwrap_or(start.seed);
        let own = derive(&seed, "state key", 0);
        let keys = match keys {
            [] => KeyRing::new([own]),
            keys => KeyRing::new(keys),
        };
        Self { keys, start: *start, made: 0 }
    }

    pub(crate) fn keys(&self) -> &KeyRing {
        &self.keys
    }

    pub(crate) fn open(
        &self,
        now: Instant,
        binding: &Binding,
        inputs: &Inputs,
        limits: &RoundLimits,
    ) -> Result<Opened, Refused> {
        request_state::open(&self.keys, self.unix(now), binding, inputs, limits.max_state)
    }

    pub(crate) fn seal(
        &mut self,
        now: Instant,
        binding: Binding,
        contents: (Option<RoundId>, Journal),
        limits: &RoundLimits,
    ) -> Option<Sealed> {
        let expires = self.unix(now).saturating_add(limits.state_ttl.as_secs().max(1));
        let nonce = self.fresh("nonce");
        request_state::seal(&self.keys, expires, binding, contents, nonce, limits.max_state)
    }

    /// A name that nothing else has, and nobody can guess.
    pub(crate) fn round(&mut self) -> RoundId {
        RoundId(self.fresh("round"))
    }

    fn fresh<const N: usize>(&mut self, purpose: &str) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&derive(&self.start.seed, purpose, self.made)[..N]);
        self.made += 1;
        bytes
    }

    /// Tells this process's references from those of others in one log.
    pub(crate) fn tag(&self) -> String {
        let digest = derive(&self.start.seed, "reference", 0);
        format!("{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }

    fn unix(&self, now: Instant) -> u64 {
        self.start.unix + now.duration_since(self.start.now).as_secs()
    }
}

/// A secret of its own for each purpose.
pub(crate) fn derive(seed: &[u8; 32], purpose: &str, number: u64) -> [u8; 32] {
    Sha256::new()
        .chain_update(seed)
        .chain_update(purpose)
        .chain_update(number.to_le_bytes())
        .finalize()
        .into()
}
