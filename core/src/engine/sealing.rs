//! The start of an engine: time, secrets and unique names, which sans-IO code gets as arguments.

use std::time::Instant;

use sha2::{Digest as _, Sha256};

use super::{
    key_ring::KeyRing,
    request_state::{self, Binding, Opened, Refused, RoundId, Sealed},
    test_mode::TestMode,
};
use crate::{protocol::Inputs, router::RoundLimits, session::asking::Journal};

/// The start of a service: what sans-IO code can't read by itself.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The current time.
    pub now: Instant,
    /// The current time in seconds since 1970.
    pub unix: u64,
    /// Secret random bytes.
    pub seed: [u8; 32],
    /// `None`, except for a server under test.
    pub test_mode: Option<TestMode>,
}

/// Seals and opens the state that clients carry between the rounds of a call.
#[derive(Debug)]
pub(crate) struct Sealing {
    keys: KeyRing,
    start: Start,
    made: u64,
    /// A number that other processes, and earlier ones, do not have.
    process: u64,
}

impl Sealing {
    /// Creates the keys of a server. Without keys of the user, states are valid in this process only.
    pub(crate) fn new(server: &str, keys: &[Vec<u8>], start: &Start) -> Self {
        let seed = start.test_mode.and_then(|mode| mode.state_key).unwrap_or(start.seed);
        let own = derive(&seed, "state key", 0);
        let keys = match keys {
            [] => KeyRing::new([own]),
            keys => KeyRing::new(keys),
        };
        let mut process = [0; 8];
        process.copy_from_slice(&derive(&start.seed, "process", 0)[..8]);
        let process = u64::from_le_bytes(process);
        Self { keys: keys.of_server(server), start: *start, made: 0, process }
    }

    /// Replaces the keys of the user. The first seals from now on, and all of them open.
    pub(crate) fn set_keys(&mut self, keys: &[Vec<u8>]) {
        self.keys = self.keys.with_keys(keys);
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

    /// Seals a text for one purpose. Returns its nonce and the sealed bytes.
    pub(crate) fn seal_text(&mut self, purpose: &str, text: &[u8]) -> Option<Vec<u8>> {
        let nonce = self.fresh("nonce");
        self.keys.seal(purpose, &nonce, text)
    }

    /// Returns the keys with which a store is sealed, and a secret for it that nothing else has.
    #[cfg(feature = "http")]
    pub(crate) fn store_keys(&self) -> (KeyRing, [u8; 32]) {
        (self.keys.clone(), derive(&self.start.seed, "store", 0))
    }

    /// Returns a number that other processes, and earlier ones, do not have.
    pub(crate) fn process(&self) -> u64 {
        self.process
    }

    /// Returns a unique name that can't be guessed, and that begins with the number of this process.
    pub(crate) fn round(&mut self) -> RoundId {
        let mut round: [u8; 16] = self.fresh("round");
        round[..8].copy_from_slice(&self.process().to_le_bytes());
        RoundId(round)
    }

    fn fresh<const N: usize>(&mut self, purpose: &str) -> [u8; N] {
        let mut bytes = [0; N];
        bytes.copy_from_slice(&derive(&self.start.seed, purpose, self.made)[..N]);
        self.made += 1;
        bytes
    }

    /// Returns the prefix of this process's references, which distinguishes them from those of other processes in one log.
    pub(crate) fn tag(&self) -> String {
        let digest = derive(&self.start.seed, "reference", 0);
        format!("{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
    }

    pub(crate) fn unix(&self, now: Instant) -> u64 {
        self.start.unix + now.duration_since(self.start.now).as_secs()
    }
}

/// Derives a secret for one purpose.
pub(crate) fn derive(seed: &[u8; 32], purpose: &str, number: u64) -> [u8; 32] {
    Sha256::new()
        .chain_update(seed)
        .chain_update(purpose)
        .chain_update(number.to_le_bytes())
        .finalize()
        .into()
}
