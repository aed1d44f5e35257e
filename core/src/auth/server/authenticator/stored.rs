//! The facts that servers know together, in a store: proofs of possession that were used, and sign-ins that were revoked.

use std::time::{Duration, Instant};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::{
    AuthOutput, AuthRefusal, AuthTicket, Authenticator, Caller,
    attempt::{Attempt, Waiting, used_before},
};
use crate::{
    auth::server::dpop_check::ProofId,
    store::{Expect, StoreOperation, StoreReply},
};

/// The seconds by which the clock of another server with the same store may be slow, so that it accepts a proof for longer.
const CLOCK_DIFFERENCE: u64 = 60;

impl Authenticator {
    /// Returns the decision about a request whose checks have this result; `None` if it waits for the store, which has to
    /// know whether the proof is new.
    pub(super) fn decide_or_ask_store(
        &mut self,
        unix: u64,
        ticket: AuthTicket,
        attempt: &mut Attempt,
        finished: Result<(Caller, Option<ProofId>), AuthRefusal>,
    ) -> Option<Result<Caller, AuthRefusal>> {
        let (caller, proof) = match finished {
            Ok((caller, Some(proof))) => (caller, proof),
            Ok((caller, None)) => return Some(Ok(caller)),
            Err(refusal) => return Some(Err(refusal)),
        };
        attempt.caller = Some(caller);
        attempt.waits_for = Some(Waiting::Store);
        self.outputs.push_back(AuthOutput::Store(ticket, use_once(&proof, unix)));
        None
    }

    /// Handles the reply of the store. Without one that can be used, the request is refused.
    pub(super) fn stored(
        &mut self,
        (now, unix): (Instant, u64),
        ticket: AuthTicket,
        reply: StoreReply,
    ) {
        let is_about_token = |attempt: &Attempt| attempt.waits_for == Some(Waiting::Revocation);
        if self.pending.get(ticket).is_some_and(is_about_token) {
            if let Some(attempt) = self.pending.remove(ticket) {
                self.take_revocation((now, unix), ticket, attempt, reply);
            }
            return;
        }
        let is_asked = |attempt: &Attempt| attempt.waits_for == Some(Waiting::Store);
        if !self.pending.get(ticket).is_some_and(is_asked) {
            return;
        }
        let caller = self.pending.remove(ticket).and_then(|attempt| attempt.caller);
        let decision = match (reply, caller) {
            (StoreReply::Stored(_), Some(caller)) => Ok(caller),
            (StoreReply::Conflict, _) => Err(used_before()),
            (reply, _) => {
                let reason = match reply {
                    StoreReply::Failed(reason) => reason,
                    _ => "the reply is that of another operation".into(),
                };
                if let Some(left_out) = self.log.due(unix) {
                    tracing::error!(
                        "the store failed, so a request with a DPoP proof is answered with 503: {reason}{left_out}"
                    );
                }
                Err(AuthRefusal::Unavailable)
            }
        };
        self.outputs.push_back(AuthOutput::Decided(ticket, decision));
    }
}

/// Returns the operation that succeeds for one of the requests with a proof. The store sees a digest of the proof's id only.
fn use_once(proof: &ProofId, unix: u64) -> StoreOperation {
    let left = proof.until.saturating_sub(unix) + CLOCK_DIFFERENCE;
    StoreOperation::Put {
        key: format!("gudgeon:dpop:{}", URL_SAFE_NO_PAD.encode(proof.id.0)),
        value: b"1".into(),
        ttl: Duration::from_secs(left),
        expect: Expect::Absent,
    }
}
